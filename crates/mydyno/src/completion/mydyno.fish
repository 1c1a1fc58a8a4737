# Completion of mydyno in fish.
function __mydyno_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    # env reports a program that is not there; a shell would do so in the prompt.
    env MYDYNO_COMPLETE=fish (string replace --regex '^~' $HOME $words[1]) -- $words (commandline --current-token) 2>/dev/null
end
complete --keep-order --exclusive --command mydyno --arguments "(__mydyno_complete)"
