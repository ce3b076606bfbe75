#!/usr/bin/env bash
# Compares policies on two running engines, through Envoy: every policy gets the same arrivals and lengths. Explained in
# docs/real-engines.md.
#
#   ENGINES  addresses of two engines                             127.0.0.1:8000 127.0.0.1:8001
#   MODEL    the model they serve                                 tiny
#   ENVOY    an Envoy binary                                      envoy
#   BIN      folder of presage and presage-lab                    bin
#   POLICIES what to compare; the first against the others        predictive argmin-ttft lmetric …
#   SEEDS    of the arrivals; three or more for intervals         1 2 3
#   MODES    equal, slow or both                                  slow equal
#   SLOW     core of the engine that "slow" slows by a busy loop  1
#   LOAD     further flags of presage-lab load                    --rate 22 --duration 30s --warmup 5s
set -euo pipefail
cd "$(dirname "$0")/.."
read -r -a engines <<<"${ENGINES:-127.0.0.1:8000 127.0.0.1:8001}"
read -r -a policies <<<"${POLICIES:-predictive argmin-ttft lmetric llmd-sticky-token weighted least-request round-robin}"
read -r -a flags <<<"--rate 22 --duration 30s --warmup 5s ${LOAD:-}"
model=${MODEL:-tiny} envoy=${ENVOY:-envoy} bin=${BIN:-bin} slow=${SLOW:-1}
gateway=127.0.0.1:10000 admin=127.0.0.1:10090
((${#engines[@]} == 2)) || { echo "ENGINES: ${#engines[@]} addresses; name two" >&2; exit 2; }

work=$(mktemp -d)
pids=()
stop() { # ends one process of this script and waits for it
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}
finish() {
  for p in "${pids[@]}"; do stop "$p"; done
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

await() { # URL WHAT: until the URL answers
  for _ in $(seq 150); do
    curl -fsS -o /dev/null --max-time 2 "$1" 2>/dev/null && return
    sleep 0.2
  done
  echo "$2: no answer from $1 within 30 s; see what it wrote" >&2
  tail -n 3 "$work"/*.log >&2 || true
  exit 1
}
for e in "${engines[@]}"; do await "http://$e/v1/models" "engine $e"; done
text=$(date +%s) # other texts than those of earlier calls
for e in "${engines[@]}"; do # the first requests of an engine compile what the later ones use
  "$bin/presage-lab" load --target "http://$e" --model "$model" "${flags[@]}" --rate 5 --duration 4s --warmup 0s --text "$text" >"$work/warm.log" 2>&1 || { cat "$work/warm.log" >&2; exit 1; }
done

sed -e "s/port_value: 8080}/port_value: ${gateway##*:}}/" -e 's/port_value: 9901}/port_value: 10901}/' -e 's/port_value: 9002}/port_value: 10002}/' \
  -e "s/address: 127.0.0.1, port_value: 8000}/address: ${engines[0]%:*}, port_value: ${engines[0]##*:}}/" \
  -e "s/address: 127.0.0.1, port_value: 8001}/address: ${engines[1]%:*}, port_value: ${engines[1]##*:}}/" deploy/envoy/minimal.yaml >"$work/envoy.yaml"
"$envoy" -c "$work/envoy.yaml" --disable-hot-restart --concurrency 1 --log-level warning >"$work/envoy.log" 2>&1 &
pids+=($!)

{
  echo "endpoints:"
  for i in 0 1; do
    e=${engines[$i]}
    echo "- {name: engine-$i, address: ${e%:*}, ports: [${e##*:}], model: $model, engine: vllm, gpu: CPU}"
  done
} >"$work/endpoints.yaml"

metric() { # NAME: its value in the last page
  awk -v n="$1" '{ at = index($0, "} "); name = at ? substr($0, 1, at) : $1; if (name == n) print $NF }' "$work/page"
}

# play MODE POLICY SEED TEXT: a new service, knowing nothing, and texts that no engine has seen; appends a line of figures.
play() {
  cat >"$work/presage.yaml" <<YAML
listen: {extproc: "127.0.0.1:10002", health: off, admin: "$admin"}
fleet: {endpoints: {file: endpoints.yaml}}
answer: {endpoints: 2}
slo: {ttft: 200ms, itl: 20ms}
policy: $2
YAML
  "$bin/presage" serve -c "$work/presage.yaml" >"$work/presage.log" 2>&1 &
  local service=$!
  pids+=("$service")
  await "http://$admin/metrics" presage
  await "http://$gateway/v1/models" envoy
  sleep 1
  "$bin/presage-lab" load --target "http://$gateway" --model "$model" "${flags[@]}" --seed "$3" --text "$4" --json >"$work/out" 2>"$work/load.log" ||
    { cat "$work/load.log" >&2; exit 1; }
  curl -fsS "http://$admin/metrics" >"$work/page"
  local a b
  a=$(metric 'presage_endpoint_decisions_total{endpoint="engine-0"}') b=$(metric 'presage_endpoint_decisions_total{endpoint="engine-1"}')
  tail -n 1 "$work/out" | sed 's/[{}"]//g' | tr , '\n' | awk -F: -v OFS='\t' -v m="$1" -v p="$2" -v s="$3" -v share="$(awk -v a="${a:-0}" -v b="${b:-0}" 'BEGIN { print (a + b ? b / (a + b) : 0) }')" '
    { v[$1] = $2 }
    END { print m, p, s, v["requests"], v["failed"], 100 * v["slo_attainment"], v["ttft_mean_ms"], v["ttft_p90_ms"], v["itl_p50_ms"], 100 * v["hit_ratio"], 100 * share }' >>"$work/rows"
  tail -n 1 "$work/rows" | awk -F'\t' '{ printf "%-6s %-18s seed %s: in SLO %.1f %%, TTFT mean %.0f ms, p90 %.0f ms, ITL %.1f ms, cached %.0f %%, %.0f %% to engine-1, %d of %d failed\n", $1, $2, $3, $6, $7, $8, $9, $10, $11, $5, $4 }' >&2
  stop "$service"
}

for mode in ${MODES:-slow equal}; do
  loop=
  if [[ $mode == slow ]]; then
    taskset -c "$slow" bash -c 'while :; do :; done' &
    loop=$!
    pids+=("$loop")
  fi
  turn=0
  for seed in ${SEEDS:-1 2 3}; do
    for k in "${!policies[@]}"; do # another one begins with each seed, since machines drift
      text=$((text + 1))
      play "$mode" "${policies[$(((k + turn) % ${#policies[@]}))]}" "$seed" "$text"
    done
    turn=$((turn + 1))
  done
  [[ -z $loop ]] || stop "$loop"
done

# Means over the seeds, and the difference of the first policy to each other one, seed by seed, with its 95 % interval (Student).
awk -F'\t' -v order="${policies[*]}" '
  BEGIN { split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " "); n = split(order, name, " ") }
  { mode[$1] = 1; at[$1, $2, $3] = $6; seeds[$1, $3] = 1; c[$1, $2]++; for (i = 5; i <= NF; i++) sum[$1, $2, i] += $i }
  END {
    for (m in mode) {
      printf "\n%s engines\n%-18s %8s %10s %8s %8s %7s %9s %7s   %s\n", m, "POLICY", "IN SLO", "TTFT mean", "p90", "ITL p50", "CACHED", "ENGINE-1", "FAILED", name[1] " less it, points"
      for (k = 1; k <= n; k++) {
        p = name[k]; r = c[m, p]
        printf "%-18s %6.1f %% %7.0f ms %5.0f ms %5.1f ms %5.0f %% %7.0f %% %7d", p, sum[m, p, 6] / r, sum[m, p, 7] / r, sum[m, p, 8] / r, sum[m, p, 9] / r, sum[m, p, 10] / r, sum[m, p, 11] / r, sum[m, p, 5]
        if (k > 1) {
          d = dd = j = 0
          for (key in seeds) { split(key, part, SUBSEP); if (part[1] == m) { x = at[m, name[1], part[2]] - at[m, p, part[2]]; d += x; dd += x * x; j++ } }
          d /= j
          if (j > 1) { v = (dd - j * d * d) / (j - 1); printf "   %+.1f (%+.1f to %+.1f)", d, d - t[j < 10 ? j - 1 : 9] * sqrt((v > 0 ? v : 0) / j), d + t[j < 10 ? j - 1 : 9] * sqrt((v > 0 ? v : 0) / j) }
          else printf "   %+.1f", d
        }
        printf "\n"
      }
    }
  }' "$work/rows"
