package fleet

import "unique"

// Class is what endpoints share when the same work costs them the same time: model, hardware and
// engine. Empty fields are unknown; endpoints without labels form one class.
type Class struct {
	Model, GPU, Engine string
	TP                 int
}

// ClassID is a Class made comparable in one step, for use as a key on the decision path. The zero
// ClassID is no class.
type ClassID = unique.Handle[Class]

// Class is the class of the endpoint.
func (e *Endpoint) Class() Class {
	return Class{Model: e.Model, GPU: e.GPU, Engine: e.Engine, TP: max(e.TP, 1)}
}
