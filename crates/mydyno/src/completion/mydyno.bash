# Completion of mydyno in bash.
_clap_complete_mydyno() {
    # Bash splits words at "=", ":" and "@", which stand inside of options and values here: the parts are joined.
    local joint='^[=:@]+$' glue=false words=() index=0 word i
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)) && [[ ! $word =~ $joint ]]; then
            # Only what is before the cursor.
            word=$2
            [[ ${COMP_LINE:0:${COMP_POINT:-0}} =~ [[:space:]]$ ]] && glue=false
        fi
        if ((i > 1)) && { $glue || [[ $word =~ $joint ]]; }; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        ((i == COMP_CWORD)) && index=$((${#words[@]} - 1))
        if [[ $word =~ $joint ]]; then glue=true; else glue=false; fi
    done
    # Bash replaces the last part alone.
    local head=${words[index]} program=${1/#\~/$HOME} IFS=$'\013'
    head=${head%"$2"}
    compopt +o nospace 2> /dev/null
    COMPREPLY=($(
        _CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX="$index" _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
            MYDYNO_COMPLETE=bash "$program" -- "${words[@]}" 2> /dev/null
    ))
    [[ ${COMPREPLY-} =~ [=/:]$ ]] && compopt -o nospace 2> /dev/null
    COMPREPLY=("${COMPREPLY[@]#"$head"}")
    return 0
}
if [[ ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 || ${BASH_VERSINFO[0]} -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _clap_complete_mydyno mydyno
else
    complete -o nospace -o bashdefault -F _clap_complete_mydyno mydyno
fi
