package config

import (
	"fmt"
	"strings"

	"github.com/presage-router/presage/router"
)

// Reference renders the reference page of the configuration file from the table that reads it.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := ""
	for _, o := range Default().options() {
		name, _, nested := strings.Cut(o.key, ".")
		if name != section {
			section = name
			title := name
			if !nested {
				title = o.key
			}
			fmt.Fprintf(&b, "\n## %s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.key, o.kind, code(o.def), o.about)
	}
	b.WriteString(referenceExperiments + referenceProfiles)
	fmt.Fprintf(&b, "- filters: %s\n- scorers: %s\n- pickers: %s\n",
		codes(router.FilterNames()), codes(router.ScorerNames()), codes(router.PickerNames()))
	return b.String()
}

func code(s string) string {
	if s == "none" {
		return s
	}
	return "`" + s + "`"
}

func codes(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

const referenceHead = `# Configuration file

<!-- Generated from cmd/internal/config; rewrite it with: make golden -->

` + "`presage serve -c presage.yaml`" + ` reads one YAML file; ` + "`presage check -c presage.yaml`" + ` only checks it. The file is strict: unknown
keys, numbers without a unit, impossible values and names that do not exist are errors, and all errors are reported at
once. Every key but the source of endpoints has a default. An explicit 0 is a 0, never "unset".

The file is watched. A change is checked first; a file with errors changes nothing, and the last good configuration goes on
serving. ` + "`listen`, `tls`, `admin`, `fleet`, `outliers`, `models`, `trace`, `request.max_body`, `request.total_bytes` and `request.decision_deadline`" + ` take effect at the
next start, everything else at once. (The histograms of the metrics page keep the SLOs of the start among their bounds.)

Relative paths start at the folder of the configuration file. Without ` + "`models.dir` and `trace.dir`" + ` nothing is written to disk.

Anchors, aliases and tags are not supported. The file is at most 64 KiB long.
`

const referenceExperiments = `
## Experiments

With ` + "`experiment`" + ` two or more policies share the traffic, and every decision, log line, metric and record says which arm it
belongs to. A change of the file that leaves the experiment as it is keeps its state.

` + "```yaml" + `
experiment:
  arms: {weighted: 0.5, least-request: 0.5}
  unit: block                                # everybody meets one policy for a while
  length: 5m
  washout: 30s
  guardrails: {slo: 0.05, errors: 0.02, ttft_p90: 1.25}
shadow: [round-robin]                        # decides beside them, without effect
` + "```" + `

Arms by session or request share queues and caches: what differs between them is no measure of what a switch of everybody
would bring. To go on measuring one policy against the former, give the former a share of 0 and hold blocks back for it:
` + "`arms: {weighted: 1, least-request: 0}, control: least-request, hold_back: 0.1`" + `.
`

const referenceProfiles = `
## Profiles

A profile is a policy of its own name: filters remove candidates, every scorer rates what is left between 0 and 1, and the picker
chooses by the weighted sum. ` + "`weighted`" + ` may be given another make-up.

` + "```yaml" + `
profiles:
  near-cache:
    filters: [stale, {name: queue, max: 64}]   # without filters: [stale]; []: none
    scorers: {prefix: 3, queue: 2, kv:}        # without a weight: the scorer's own; 0: no influence
    picker: epsilon-greedy                     # without a picker: max
    epsilon: 0.02                              # share of exploratory picks, with epsilon-greedy only
    max_age: 3s                                # older metrics pages count as unknown
    probe: 10s                                 # after so long without work an endpoint that looks full is tried; off: never
policy: near-cache
` + "```" + `

`
