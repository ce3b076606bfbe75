package predictor

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/presage-router/presage/features"
	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/predictor/conformal"
	"github.com/presage-router/presage/predictor/gbdt"
	"github.com/presage-router/presage/predictor/ridge"
)

// State is all that a [Learner] knows of its classes, as data: what a model file holds. Corrections
// of single endpoints are left out: they belong to instances, which do not outlive a process.
type State struct {
	Version int               `json:"version"`
	Schema  features.SchemaID `json:"schema"`
	Classes []ClassState      `json:"classes"`
}

// ClassState is what a learner knows of one class.
type ClassState struct {
	Model  string `json:"model"`
	GPU    string `json:"gpu"`
	Engine string `json:"engine"`
	TP     int    `json:"tp"`
	None   bool   `json:"none,omitzero"` // the class of endpoints without one

	Prior   Law                  `json:"prior"`
	Theta   ridge.State          `json:"theta"`
	Phi     ridge.State          `json:"phi"`
	Steps   int                  `json:"steps"`
	Answer  float64              `json:"answer_tokens"`
	Context [2]float64           `json:"context"` // of a stream; a fading mean: sum and weight
	Trust   [2]float64           `json:"trust"`
	Targets [targets]TargetState `json:"targets"`
}

// TargetState is what a learner knows of one time of a class.
type TargetState struct {
	Fast     ridge.State                  `json:"fast"`
	Slow     ridge.State                  `json:"slow"`
	Recent   []float64                    `json:"recent"` // a ring of logarithms; Labels says where it stands
	Labels   int                          `json:"labels"`
	Cut      int                          `json:"cut"`    // labels that are of another time
	Losses   [features.Members][2]float64 `json:"losses"` // fading means: sum and weight
	Own      [2]float64                   `json:"own"`
	Bands    conformal.State              `json:"bands"`
	Fallback bool                         `json:"fallback"`

	Rows   []byte          `json:"rows"` // a ring of rows for the trees, see appendRows
	Fitted int             `json:"fitted"`
	Trees  *gbdt.Model     `json:"trees"`
	Ratio  *gbdt.Model     `json:"ratio"`
	High   features.Vector `json:"high"`
}

// StateVersion is that of the written form.
const StateVersion = 1

// MaxStateBytes bounds the written form.
const MaxStateBytes = 64 << 20

// Encode writes the state as JSON.
func (s *State) Encode() ([]byte, error) {
	b, err := json.Marshal(s)
	if err == nil && len(b) > MaxStateBytes {
		return nil, fmt.Errorf("the model takes %d bytes, more than %d", len(b), MaxStateBytes)
	}
	return b, err
}

// DecodeState reads what [State.Encode] wrote. Unknown and repeated keys are errors, as are another
// version and another schema; what the values say is checked by [Learner.Restore].
func DecodeState(data []byte) (*State, error) {
	if len(data) > MaxStateBytes {
		return nil, fmt.Errorf("larger than %d MiB", MaxStateBytes>>20)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("empty")
	}
	s := new(State)
	if err := json.Unmarshal(data, s, json.RejectUnknownMembers(true)); err != nil {
		// The head may still tell that it is of another time.
		var head struct {
			Version int               `json:"version"`
			Schema  features.SchemaID `json:"schema"`
		}
		if json.Unmarshal(data, &head) == nil && (head.Version != StateVersion || head.Schema != schema) {
			s.Version, s.Schema = head.Version, head.Schema
			return nil, s.check()
		}
		return nil, fmt.Errorf("cannot parse the model: %w", err)
	}
	return s, s.check()
}

// ErrOther is the reason for which a state of another version or schema is refused.
var ErrOther = errors.New("of another version")

func (s *State) check() error {
	switch {
	case s.Version != StateVersion:
		return fmt.Errorf("model version %d, this program reads %d: %w", s.Version, StateVersion, ErrOther)
	case s.Schema != schema:
		return fmt.Errorf("schema %.40q, this program reads %s: %w", s.Schema, schema, ErrOther)
	}
	return nil
}

// Save returns all that was learned of the classes. It shares nothing that changes with the learner.
func (l *Learner) Save() State {
	s := State{Version: StateVersion, Schema: schema, Classes: make([]ClassState, len(l.order))}
	for i, c := range l.order {
		s.Classes[i] = c.save()
	}
	return s
}

// Restore makes the learner know what a state says, and forget all else: what it learned itself, and
// the corrections of endpoints. A state that no learner could have saved is refused with the place
// that shows it, and the learner is unchanged then.
func (l *Learner) Restore(s State) error {
	if err := s.check(); err != nil {
		return err
	}
	if len(s.Classes) > maxClasses {
		return fmt.Errorf("classes: %d, more than %d", len(s.Classes), maxClasses)
	}
	classes := make(map[fleet.ClassID]*class, len(s.Classes))
	order := make([]*class, len(s.Classes))
	for i := range s.Classes {
		c, err := s.Classes[i].restore()
		if err != nil {
			return fmt.Errorf("classes[%d] (%s): %w", i, s.Classes[i].name(), err)
		}
		if classes[c.id] != nil {
			return fmt.Errorf("classes[%d] (%s): twice", i, s.Classes[i].name())
		}
		classes[c.id], order[i] = c, c
	}
	l.classes, l.order, l.slots, l.frozen = classes, nil, nil, new(Frozen)
	for _, c := range order {
		l.share(c)
		l.order = append(l.order, c)
	}
	return nil
}

const maxClasses = 4096

func (s *ClassState) name() string {
	return fmt.Sprintf("%.40q on %d %.20q", s.Model, s.TP, s.GPU)
}
