package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/presage-router/presage/internal/telemetry"
)

// Client asks the admin address of a running service. Its errors are made for operators.
type Client struct {
	URL     string        // as http://127.0.0.1:9090
	Token   string        // admin.token; empty: none
	HTTP    *http.Client  // nil: http.DefaultClient
	Timeout time.Duration // for one answer; 0: 2 s
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 32 << 20

// Explain returns the decision of that id.
func (c *Client) Explain(ctx context.Context, id string) (*Explained, error) {
	x := &Explained{}
	return x, c.get(ctx, "/explain?id="+url.QueryEscape(id), x)
}

// Last returns the newest decision.
func (c *Client) Last(ctx context.Context) (*Explained, error) {
	x := &Explained{}
	return x, c.get(ctx, "/explain?last=1", x)
}

// Worst returns the n slowest decisions that are kept.
func (c *Client) Worst(ctx context.Context, n int) ([]*Explained, error) {
	var out struct {
		Decisions []*Explained `json:"decisions"`
	}
	err := c.get(ctx, "/explain?worst="+strconv.Itoa(n), &out)
	return out.Decisions, err
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return fmt.Errorf("--admin %s: no address; write http://HOST:PORT", telemetry.Clean(c.URL))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("--admin %s: %w", telemetry.Clean(c.URL), err)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return c.unreachable(err, timeout)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return c.unreachable(err, timeout)
	}
	return c.read(res, body, into)
}

// unreachable says what to do about an address that does not answer.
func (c *Client) unreachable(err error, timeout time.Duration) error {
	const hint = "is presage serve running here? in a cluster: kubectl port-forward deploy/presage 9090"
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("--admin %s: no answer in %g s; %s", c.URL, timeout.Seconds(), hint)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("--admin %s: connection refused; %s", c.URL, hint)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("--admin %s: %w; %s", c.URL, err, hint)
}

// read decodes an answer, or the reason of a refusal.
func (c *Client) read(res *http.Response, body []byte, into any) error {
	if res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, into); err == nil {
			return nil
		}
		return fmt.Errorf("--admin %s: answers, but not as presage does; is it the admin address (listen.admin)?", c.URL)
	}
	var refusal struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &refusal); err != nil || refusal.Error == "" {
		return fmt.Errorf("--admin %s: status %d, and not from presage; is it the admin address (listen.admin)?", c.URL, res.StatusCode)
	}
	why := telemetry.Clean(refusal.Error)
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return fmt.Errorf("--admin %s: %s", c.URL, why)
	}
	return errors.New(why)
}
