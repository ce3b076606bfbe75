package workload

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed scenarios/*.yaml
var builtin embed.FS

// Names are the scenarios that come with the package, sorted.
func Names() []string {
	entries, _ := builtin.ReadDir("scenarios") // embedded: cannot fail
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Builtin returns the scenario of that name.
func Builtin(name string) (*Scenario, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("scenario: %q unknown; %s", name, suggest(name, Names()))
	}
	file := path.Join("scenarios", name+".yaml")
	data, err := builtin.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(name+".yaml", data)
}

// Open returns a built-in scenario by its name, or reads the file of that name: whatever holds a dot
// or a slash is a file.
func Open(nameOrFile string) (*Scenario, error) {
	if strings.ContainsAny(nameOrFile, `./\`) {
		return Load(nameOrFile)
	}
	return Builtin(nameOrFile)
}

// NeedsTrace reports whether the scenario replays a trace that [Options] must name.
func (s *Scenario) NeedsTrace() bool {
	return slices.ContainsFunc(s.Traffic, func(t Traffic) bool { return t.Trace != nil && t.Trace.File == "" })
}
