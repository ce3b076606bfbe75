package report

import (
	"fmt"
	"strings"
)

// seeds are "1 to 8", or the list where it has holes.
func seeds(s []uint64) string {
	if len(s) == 0 {
		return ""
	}
	gaps := false
	var names []string
	for i, v := range s {
		gaps = gaps || i > 0 && v != s[i-1]+1
		if i < 40 {
			names = append(names, fmt.Sprint(v))
		}
	}
	switch {
	case len(s) == 1:
		return names[0]
	case !gaps:
		return fmt.Sprintf("%d to %d", s[0], s[len(s)-1])
	case len(s) > 40:
		return strings.Join(names, ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

func intervals(c *Comparison) string {
	if c.Live != nil {
		if c.Live.AlwaysValid {
			return "Intervals: confidence sequences over block pairs. They may be read at any time."
		}
		return "Intervals: for one look at the planned end."
	}
	tests := 0
	for i := range c.Versus {
		if c.Versus[i].Primary.P.Known() {
			tests++
		}
	}
	s := "Intervals: Student's t of paired differences over seeds"
	if tests > 1 {
		s += ", Holm-corrected over " + plural(tests, "comparison")
	}
	return s + "."
}

func simulator(c *Comparison) string {
	m := &c.Method
	if c.Live != nil || !m.TTFTOff.Known() || !m.ITLOff.Known() {
		return ""
	}
	return "Simulator error against measured vLLM: TTFT " + percent(m.TTFTOff, 1) + ", ITL " + percent(m.ITLOff, 1) + ". Differences smaller than that may not carry over to hardware."
}
