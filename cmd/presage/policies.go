package main

import "github.com/presage-router/presage/cmd/internal/serve"

type policiesCommand struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Run lists the policies that a configuration may name.
func (c *policiesCommand) Run(t *terminal) error {
	type policy struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	registry := serve.Policies()
	list := make([]policy, 0, len(registry))
	rows := [][2]string{{"POLICY", "ABOUT"}}
	for _, name := range registry.Names() {
		list = append(list, policy{Name: name, About: registry[name].About})
		rows = append(rows, [2]string{name, registry[name].About})
	}
	if c.JSON {
		return t.json(map[string][]policy{"policies": list})
	}
	t.columns(rows)
	return nil
}
