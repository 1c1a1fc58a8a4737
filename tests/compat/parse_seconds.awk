# Lines by the second as CSV, in the manner of people's scripts.
/^\[ *[0-9]+s \]/ {
   time = $2; sub(/s$/, "", time)
   for (i = 1; i < NF; i++) {
      if ($i == "thds:") threads = $(i + 1)
      if ($i == "tps:") tps = $(i + 1)
      if ($i == "qps:") qps = $(i + 1)
      if ($i == "(r/w/o:") { split($(i + 1), parts, "/"); sub(/\)/, "", parts[3]) }
      if ($i == "(ms,95%):") latency = $(i + 1)
      if ($i == "err/s:") errors = $(i + 1)
      if ($i == "reconn/s:") reconnects = $(i + 1)
   }
   if (i == NF) reconnects = $NF
   rows++
   sum = parts[1] + parts[2] + parts[3]
   if (tps > 0 && latency > 0 && sum > qps - 0.1 && sum < qps + 0.1 && threads != "" && errors == "0.00" && reconnects == "0.00") good++
}
END { printf "rows %s good %s\n", (rows > 1 ? "some" : "few"), (rows == good ? "all" : "not all") }
