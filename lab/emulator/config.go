package emulator

import (
	"fmt"
	"time"

	"github.com/presage-router/presage/lab/engine"
)

// Dialect says whose metrics page is served.
type Dialect uint8

// The dialects.
const (
	VLLM Dialect = iota
	SGLang
)

// ParseDialect reads a dialect's name; the empty name is VLLM.
func ParseDialect(s string) (Dialect, error) {
	switch s {
	case "", "vllm":
		return VLLM, nil
	case "sglang":
		return SGLang, nil
	}
	return VLLM, fmt.Errorf("dialect: %q unknown; one of vllm, sglang", s)
}

// String returns the name that [ParseDialect] reads.
func (d Dialect) String() string {
	if d == SGLang {
		return "sglang"
	}
	return "vllm"
}

// Config describes one server. Engine must be set; the zero value of any other field means the
// default given with it.
type Config struct {
	Engine   engine.Config // Progress is set to 1
	Model    string        // served name; empty: that of the coefficients
	Adapters []string      // LoRA adapters loaded from the start
	Rank     int           // data-parallel rank: the label engine of the metrics
	Events   *Events       // nil: no KV events; see [Emulator.ServeEvents]
	Dialect  Dialect
	Speed    float64       // engine seconds per second; 0: 1
	MaxLen   int           // context length, tokens; 0: 131072
	MaxBody  int64         // bytes of a request; 0: 32 MiB
	MaxOpen  int           // requests at once, the waiting included; 0: 8192
	Load     time.Duration // time from the start of Run until the model is loaded; requests get 503 before
}

func (c *Config) defaults() error {
	switch {
	case c.Speed < 0 || c.Speed > 1000 || c.Speed != c.Speed:
		return fmt.Errorf("speed: %v is not between 0 and 1000", c.Speed)
	case c.MaxLen < 0 || c.MaxBody < 0 || c.MaxOpen < 0 || c.Rank < 0 || c.Load < 0:
		return fmt.Errorf("emulator: a limit is negative")
	}
	if c.Model == "" {
		c.Model = c.Engine.Coefs.Model
	}
	if c.Speed == 0 {
		c.Speed = 1
	}
	if c.MaxLen == 0 {
		c.MaxLen = 128 << 10
	}
	if c.MaxBody == 0 {
		c.MaxBody = 32 << 20
	}
	if c.MaxOpen == 0 {
		c.MaxOpen = 8 << 10
	}
	c.Engine.Progress, c.Engine.KVEvents = 1, c.Events != nil
	return nil
}
