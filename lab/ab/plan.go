package ab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/presage-router/presage/internal/spell"
	"github.com/presage-router/presage/router/experiment"
)

// manyChanges of arms that lie on no grid are no blocks.
const manyChanges = 20

// Options are what the log cannot tell, or is not to be asked for. The zero value asks it for all.
type Options struct {
	Control string         // arm that the others are held against; empty: held-back blocks, else see [Survey.Plan]
	Unit    string         // block, session or request; empty: as the log shows
	Block   time.Duration  // length of blocks, or of the cells of time of a split; 0: as the log shows
	Washout *time.Duration // at the start of a block; nil: the longer of 60 s and the turnover of the caches
}

// The units of an experiment, as a configuration names them.
var units = experiment.Units()

// Plan is what is compared with what.
type Plan struct {
	Unit     string        // block, session or request
	Block    time.Duration // length of a block or of a cell
	Washout  time.Duration // left out at the start of a block
	Turnover time.Duration // of the caches; 0: not known
	Arms     []Arm         // by name, the control last
	Records  int
	Probes   int
	NoArm    int
	From, To time.Time // of the first and the last record

	sessions bool // records tell sessions apart
	short    string
}

// Arm is one arm of the log.
type Arm struct {
	Name     string
	Policies []string // that decided, by name
}

// control is the arm that the others are held against.
func (p *Plan) control() int { return len(p.Arms) - 1 }

// Plan says what is compared with what. Where no control is named it is the arm whose policy decides
// blocks held back, else these blocks, else an arm that is not decided by the predictive or the adaptive
// policy, the first by name of several.
// Errors say what the log lacks, and what to do.
func (s *Survey) Plan(o Options) (*Plan, error) {
	p := &Plan{Turnover: s.turnover(), Records: s.Records, Probes: s.Probes, NoArm: s.NoArm, From: s.first, To: s.last, sessions: s.sessed > 0}
	g := s.grid()
	p.Unit = o.Unit
	switch {
	case o.Unit == "" && (g.sure || g.changes < manyChanges):
		p.Unit = experiment.ByBlock.String()
	case o.Unit == "" && s.sticky():
		p.Unit = experiment.BySession.String()
	case o.Unit == "":
		p.Unit = experiment.ByRequest.String()
	case !slices.Contains(units, o.Unit):
		return nil, fmt.Errorf("unit: %q unknown%s; all: %s", o.Unit, nearest(o.Unit, units), strings.Join(units, ", "))
	}
	if err := s.choose(p, o.Control); err != nil {
		return nil, err
	}
	if o.Block < 0 || o.Washout != nil && *o.Washout < 0 {
		return nil, fmt.Errorf("block, washout: a length below 0")
	}
	if p.Block = o.Block; p.Unit != experiment.ByBlock.String() {
		if p.Block == 0 {
			p.Block = s.cell()
		}
	} else if err := s.blocks(p, o, g); err != nil {
		return nil, err
	}
	if p.Block < time.Second {
		return nil, fmt.Errorf("block: %s: less than 1s", p.Block)
	}
	if n := int64(s.last.Sub(s.first)/p.Block) + 2; n > mostCells {
		return nil, fmt.Errorf("block: the log holds %d of %s, at most %d are read; export less of it, with presage-train export --since", n, p.Block, mostCells)
	}
	return p, nil
}

// choose orders the arms.
func (s *Survey) choose(p *Plan, control string) error {
	for _, a := range s.arms {
		arm := Arm{Name: a.name}
		for policy := range a.policies {
			if policy != "fallback" || len(a.policies) == 1 {
				arm.Policies = append(arm.Policies, policy)
			}
		}
		slices.Sort(arm.Policies)
		p.Arms = append(p.Arms, arm)
	}
	slices.SortFunc(p.Arms, func(a, b Arm) int { return strings.Compare(a.Name, b.Name) })
	if len(p.Arms) > 2 && p.Unit != experiment.ByBlock.String() && control != experiment.HeldBack {
		// Blocks held back are no part of a split: nothing else was decided while they lasted.
		p.Arms = slices.DeleteFunc(p.Arms, func(a Arm) bool { return a.Name == experiment.HeldBack })
	}
	names := make([]string, len(p.Arms))
	for i := range p.Arms {
		names[i] = p.Arms[i].Name
	}
	switch {
	case s.Records == 0:
		return fmt.Errorf("empty: no records")
	case len(p.Arms) == 0:
		return fmt.Errorf("arm: none of the %d records carries one: no experiment was in force; see experiment in presage.yaml", s.Records)
	case control != "" && !slices.Contains(names, control):
		return fmt.Errorf("control: %q is no arm of the log%s; arms: %s", control, nearest(control, names), strings.Join(names, ", "))
	case len(p.Arms) == 1:
		return fmt.Errorf("arm: %s alone, in all %d records with an arm: nothing to compare it with", names[0], s.arms[0].records)
	}
	at := slices.Index(names, control)
	if at < 0 {
		if at = slices.Index(names, experiment.HeldBack); at >= 0 {
			held := p.Arms[at]
			if same := slices.IndexFunc(p.Arms, func(a Arm) bool { return a.Name != held.Name && slices.Equal(a.Policies, held.Policies) }); same >= 0 {
				at = same // the control itself; blocks held back are its twin
			}
		}
	}
	if at < 0 {
		at = max(0, slices.IndexFunc(p.Arms, func(a Arm) bool { return !learns(a) }))
	}
	c := p.Arms[at]
	p.Arms = append(slices.Delete(p.Arms, at, at+1), c)
	return nil
}

// learns reports whether an arm is decided by what one switches to rather than from.
func learns(a Arm) bool {
	return slices.ContainsFunc(a.Policies, func(p string) bool {
		return strings.HasPrefix(p, "predictive") || strings.HasPrefix(p, "adaptive")
	})
}

func nearest(name string, names []string) string {
	if n := spell.Nearest(name, names); n != "" {
		return "; nearest " + n
	}
	return ""
}

// blocks settles the length of blocks and the washout of a switchback.
func (s *Survey) blocks(p *Plan, o Options, g grid) error {
	if p.Block == 0 {
		if p.Block = g.length; p.Block == 0 {
			return fmt.Errorf("block: not enough data: %d of 2 changes of arm needed to tell how long blocks are; give a longer log, or --block", g.changes)
		}
		if !g.sure {
			p.short = fmt.Sprintf("%d changes of arm do not tell for sure that blocks are %s long; give --block", g.changes, brief(p.Block))
		}
	}
	need := max(leastWash, p.Turnover)
	switch {
	case o.Washout != nil:
		if p.Washout = *o.Washout; p.Washout >= p.Block {
			return fmt.Errorf("washout: %s: nothing is left of blocks of %s", brief(p.Washout), brief(p.Block))
		}
	case need > p.Block/2:
		p.Washout = p.Block / 2
		p.short = fmt.Sprintf("blocks of %s are too short for a washout of %s; use longer blocks, or say with --washout what is enough", brief(p.Block), brief(need))
	default:
		p.Washout = need
	}
	return nil
}

// cell is the time over which a split is summed up: long enough for some 100 records of the rarest arm,
// and for the log to have at most a thousand.
func (s *Survey) cell() time.Duration {
	least := s.arms[0].records
	for i := range s.arms {
		least = min(least, s.arms[i].records)
	}
	span := s.last.Sub(s.first)
	rare := time.Duration(min(float64(span)/float64(max(1, least))*100, float64(span)))
	return max(time.Minute, rare, span/1000).Truncate(time.Minute)
}

// brief is a length of time without what is zero at its end.
func brief(d time.Duration) string {
	if d < time.Minute {
		return d.String()
	}
	t := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(t, zero) {
			t = t[:len(t)-2]
		}
	}
	return t
}

func briefOr(d time.Duration, none string) string {
	if d == 0 {
		return none
	}
	return brief(d)
}
