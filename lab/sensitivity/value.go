package sensitivity

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/presage-router/presage/internal/spell"
)

// Dimension is one thing that can be wrong.
type Dimension struct {
	Name   string
	About  string   // one line, with its unit
	Values []string // those that are played where none are given
	parse  func(value string) (Setting, error)
}

// Setting is a value of the dimension. Errors name the value and what is possible.
func (d *Dimension) Setting(value string) (Setting, error) {
	s, err := d.parse(value)
	if err != nil {
		return Setting{}, fmt.Errorf("%s: %w", d.Name, err)
	}
	s.Value = value
	return s, nil
}

// Choice is a dimension with the settings of it that are to be played.
type Choice struct {
	*Dimension
	Settings []Setting
}

// Choose reads a list of dimensions, each with values of one's own or without: as in
// labels,error=0.1/0.3. "all" means all of them.
func Choose(list string) ([]Choice, error) {
	all := Dimensions()
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	if list == "all" {
		list = strings.Join(names, ",")
	}
	var out []Choice
	for _, part := range strings.Split(list, ",") {
		name, own, given := strings.Cut(part, "=")
		at := -1
		for i := range all {
			if all[i].Name == name {
				at = i
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("%q unknown; nearest %s, all: %s", name, spell.Nearest(name, names), strings.Join(names, ", "))
		}
		c := Choice{Dimension: &all[at]}
		for i := range out {
			if out[i].Name == name {
				return nil, fmt.Errorf("%s: named twice", name)
			}
		}
		values := c.Values
		if given {
			values = strings.Split(own, "/")
		}
		for _, v := range values {
			s, err := c.Setting(v)
			if err != nil {
				return nil, err
			}
			c.Settings = append(c.Settings, s)
		}
		out = append(out, c)
	}
	return out, nil
}

func seconds(value string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > most {
		return 0, fmt.Errorf("%q is no time within 0 and %v, as in 200ms", value, most)
	}
	return d, nil
}

func number(value string, low, high float64) (float64, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v >= low && v <= high) {
		return 0, fmt.Errorf("%q is no number within %v and %v", value, low, high)
	}
	return v, nil
}

// oneOf reads a word of a list.
func oneOf[T any](value string, known map[string]T, order ...string) (T, error) {
	v, ok := known[value]
	if !ok {
		return v, fmt.Errorf("%q unknown; nearest %s, all: %s", value, spell.Nearest(value, order), strings.Join(order, ", "))
	}
	return v, nil
}

func withKnobs(policy, knobs string) string {
	if strings.Contains(policy, ":") {
		return policy + "," + knobs
	}
	return policy + ":" + knobs
}
