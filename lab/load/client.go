package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// Client sends requests to a gateway and watches the answers.
type Client struct {
	Target string  // URL of the gateway, without a path
	Model  string  // as requests name it
	Kind   Kind    // of the engines
	Speed  float64 // engine seconds per second; all times of workloads and outcomes are the engines'
	SLO    SLO     // sent with each request
	Most   int     // requests open at a time; one that is due meanwhile fails; 0: any number

	http *http.Client
}

// NewClient makes a client of engines that run in real time.
func NewClient(target, model string, slo SLO) *Client {
	return &Client{
		Target: target, Model: model, Speed: 1, SLO: slo,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}},
	}
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do sends one job that was due at the given time and reads its answer to the end.
func (c *Client) do(ctx context.Context, j *Job, due time.Time) Outcome {
	o := Outcome{At: j.At}
	path := "/v1/completions"
	if j.Chat {
		path = "/v1/chat/completions"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Target+path, bytes.NewReader(j.body(c.Model, c.Kind)))
	if err != nil {
		o.Err = err
		return o
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Slo-Ttft-Ms", c.milliseconds(c.SLO.TTFT))
	req.Header.Set("X-Slo-Tpot-Ms", c.milliseconds(c.SLO.ITL))
	resp, err := c.http.Do(req)
	if err != nil {
		o.Err = err
		return o
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		o.Err = fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(text))
		return o
	}
	o.Err = c.read(resp.Body, &o, due)
	if o.Err == nil && o.Output != j.Output {
		o.Err = fmt.Errorf("%d tokens instead of %d", o.Output, j.Output)
	}
	return o
}

// milliseconds is a limit as the service must keep it while its engines run at the given speed.
func (c *Client) milliseconds(d time.Duration) string {
	return strconv.FormatFloat(max(1, float64(d.Milliseconds())/c.Speed), 'f', 0, 64)
}

// event is what is read of a chunk of the stream.
type event struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt  int `json:"prompt_tokens"`
		Output  int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// maxLine bounds a line of a stream.
const maxLine = 1 << 20

var errTruncated = errors.New("the answer ended without [DONE]")

// read follows the stream of an answer.
func (c *Client) read(body io.Reader, o *Outcome, due time.Time) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	tokens := 0
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if bytes.Equal(data, []byte("[DONE]")) {
			o.E2E = c.since(due)
			_, err := io.Copy(io.Discard, body)
			return err
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("cannot parse an event: %w", err)
		}
		if e.Error != nil {
			return errors.New(e.Error.Message)
		}
		if u := e.Usage; u != nil {
			o.Prompt, o.Cached, o.Output = u.Prompt, u.Details.Cached, u.Output
		}
		for _, ch := range e.Choices {
			if ch.Text == "" && ch.Delta.Content == "" {
				continue
			}
			at := c.since(due)
			if tokens++; tokens == 1 {
				o.TTFT = at
			} else {
				o.ITL = (at - o.TTFT) / time.Duration(tokens-1)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errTruncated
}

// since is the time from due to now on the engines' clock.
func (c *Client) since(due time.Time) time.Duration {
	return time.Duration(float64(time.Since(due)) * c.Speed)
}
