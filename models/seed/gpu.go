package seed

import (
	"slices"
	"strings"
)

// gpu is what of an accelerator decides how fast it goes, by its maker's data sheet.
type gpu struct {
	name    string
	flops   float64 // 1e12 dense bfloat16 operations per second
	bytes   float64 // 1e9 bytes of memory read per second
	budget  float64 // tokens per step by vLLM's defaults
	aliases []string
}

// gpus are found by the parts of their names, the first that has all of its own.
var gpus = []gpu{
	{"B300", 2250, 8000, 16384, []string{"GB300"}},
	{"B200", 2250, 8000, 16384, []string{"GB200"}},
	{"H200", 989, 4800, 8192, nil},
	{"GH200", 989, 4000, 8192, nil},
	{"H100 PCIE", 756, 2000, 8192, nil},
	{"H100 NVL", 835, 3900, 8192, nil},
	{"H100", 989, 3350, 8192, nil},
	{"H800", 989, 3350, 8192, nil},
	{"H20", 148, 4000, 8192, nil},
	{"A100 40GB", 312, 1555, 2048, nil},
	{"A100", 312, 2039, 2048, []string{"A800"}},
	{"A40", 150, 696, 2048, nil},
	{"A30", 165, 933, 2048, nil},
	{"A10G", 70, 600, 2048, nil},
	{"A10", 125, 600, 2048, nil},
	{"L40S", 362, 864, 2048, nil},
	{"L40", 181, 864, 2048, nil},
	{"L4", 121, 300, 2048, nil},
	{"T4", 65, 320, 2048, nil},
	{"V100", 125, 900, 2048, nil},
	{"RTX PRO 6000", 503, 1792, 8192, nil},
	{"RTX 6000 ADA", 364, 960, 2048, nil},
	{"RTX 5090", 210, 1792, 2048, []string{"5090"}},
	{"RTX 4090", 165, 1008, 2048, []string{"4090"}},
	{"MI355X", 2500, 8000, 8192, nil},
	{"MI325X", 1307, 6000, 8192, nil},
	{"MI300X", 1307, 5300, 8192, []string{"MI300"}},
	{"MI250X", 383, 3277, 2048, []string{"MI250"}},
	{"GAUDI3", 1835, 3700, 8192, []string{"GAUDI 3", "HL 325"}},
	{"GAUDI2", 432, 2450, 8192, []string{"GAUDI 2", "HL 225"}},
	{"TPU7X", 2307, 7380, 8192, []string{"TPU V7", "TPU V7X"}},
	{"TPU V6E", 918, 1640, 8192, []string{"TPU V6", "V6E"}},
	{"TPU V5P", 459, 2765, 8192, []string{"V5P"}},
	{"TPU V5E", 197, 819, 8192, []string{"TPU V5 LITE", "V5E", "V5LITEPOD"}},
	{"TPU V4", 275, 1228, 8192, []string{"V4"}},
	{"TRAINIUM2", 667, 2900, 8192, []string{"TRN2"}},
}

// gpuOf finds the accelerator that a name means. Slices of one (MIG) are none of them.
func gpuOf(name string) (*gpu, bool) {
	parts := strings.FieldsFunc(strings.ToUpper(name), func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
	for i, p := range parts {
		if strings.HasPrefix(p, "MIG") || len(p) == 2 && p[1] == 'G' && p[0] <= '9' {
			return nil, false
		}
		for _, form := range []string{"SXM", "PCIE", "NVL"} { // H100SXM5
			if head, tail, ok := strings.Cut(p, form); ok && head != "" && len(tail) < 2 {
				parts[i] = head
				parts = append(parts, form)
			}
		}
	}
	for i := range gpus {
		g := &gpus[i]
		for _, alias := range append([]string{g.name}, g.aliases...) {
			if !slices.ContainsFunc(strings.Fields(alias), func(p string) bool { return !slices.Contains(parts, p) }) {
				return g, true
			}
		}
	}
	return nil, false
}
