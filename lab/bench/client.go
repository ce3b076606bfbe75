package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// An answer of the soak: events that arrive slowly, so that many are open at a time.
const (
	soakTokens = 12
	soakGap    = 150 * time.Millisecond
)

// stream answers as an engine does that has nothing to compute.
func stream(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the client may have left
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	send := func(event string) bool {
		_, err := io.WriteString(w, "data: "+event+"\n\n")
		return err == nil && flush.Flush() == nil
	}
	for i := range soakTokens {
		if !send(fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{"content":" word%d"},"finish_reason":null}]}`, i)) ||
			sleep(r.Context(), soakGap) != nil {
			return
		}
	}
	if send(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) &&
		send(fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"demo","choices":[],"usage":{"prompt_tokens":40,"total_tokens":%d,"completion_tokens":%d}}`, 40+soakTokens, soakTokens)) {
		send("[DONE]")
	}
}

// await asks until a request gets through the proxy.
func (s *soakers) await(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for began := time.Now(); ; {
		_, err := s.request(ctx, client, "is anybody there", 0)
		switch {
		case err == nil:
			return nil
		case time.Since(began) > 3*patience:
			return fmt.Errorf("no answer through the proxy: %w", err)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// run keeps n clients asking for a while; each ends its last request.
func (s *soakers) run(ctx context.Context, n int, length time.Duration) {
	transport := &http.Transport{MaxIdleConnsPerHost: n}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	began := time.Now()
	for c := range n {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 7))
			// They arrive over the time of an answer, not all at once.
			if sleep(ctx, time.Duration(rng.Int64N(int64(soakTokens*soakGap)))) != nil {
				return
			}
			for i := 0; ctx.Err() == nil && time.Since(began) < length; i++ {
				after := 0
				if rng.Float64() < s.leave {
					after = 1 + rng.IntN(soakTokens)
				}
				s.count(s.request(ctx, client, fmt.Sprintf("client %d asks for the %dth time", c, i), after))
			}
		})
	}
	wg.Wait()
}

// request asks once. With leave above 0 the client leaves after so many events, and aborted is true.
func (s *soakers) request(ctx context.Context, client *http.Client, prompt string, leave int) (aborted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := fmt.Sprintf(`{"model":"demo","stream":true,"messages":[{"role":"user","content":%q}]}`, prompt)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // best effort: it explains the status
		return false, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	lines := bufio.NewScanner(resp.Body)
	for events := 0; lines.Scan(); {
		event, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if events++; events == leave {
			return true, nil
		}
		if event == "[DONE]" {
			return false, nil
		}
	}
	return false, errors.Join(errors.New("the answer ended without its end marker"), lines.Err())
}
