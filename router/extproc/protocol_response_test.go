package extproc

import (
	"context"
	"io"
	"testing"

	"github.com/presage-router/presage/features/fleet"
	"github.com/presage-router/presage/router"
)

func TestP35ResponseTrailersGRPC(t *testing.T) {
	l := newLab(t, labOptions{})
	for status, want := range map[string]fleet.Cause{"0": fleet.Complete, "13": fleet.UpstreamError} {
		l.seen = nil
		tr := l.run(errReset, open(fds, false, ":method", "POST", ":path", "/inference.Service/Call", "content-type", "application/grpc"), reqBody([]byte("\x00\x00\x00\x00\x01x"), true),
			respHeaders(false, "200", "content-type", "application/grpc"), respBody("\x00\x00\x00\x00\x01y", false), respTrailers("grpc-status", status))
		if want := "headers body+$ HEADERS BODY+ TRAILERS"; tr.kinds() != want || tr.err != nil {
			t.Errorf("replies %q, want %q; error %v", tr.kinds(), want, tr.err)
		}
		if o := l.only(); o.Cause != want {
			t.Errorf("grpc-status %s: %v", status, o.Cause)
		}
	}
	l.settled()
}

func TestP36UpstreamErrorStatus(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, join(wholeChat(), []message{
		respHeaders(false, "503", "content-type", "text/plain").with("envoy.lb", "x-gateway-destination-endpoint-served", "10.0.0.2:8000"),
		respBody("no healthy upstream", true),
	})...)
	_, answered := tr.bodies()
	equalBytes(t, "response body", answered, []byte("no healthy upstream"))
	if o := l.only(); o.Cause != fleet.UpstreamError || o.Status != 503 || o.Endpoint != "ep-2" || o.Picked != "ep-1" {
		t.Errorf("observed %+v", o)
	}
	if l.count("ended upstream_error") != 1 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}

func TestP37ServedFeedback(t *testing.T) {
	head := respHeaders(false, "200", "content-type", "application/json")
	for name, c := range map[string]struct {
		headers message
		want    string
	}{
		"metadata":             {head.with("envoy.lb", "x-gateway-destination-endpoint-served", "10.0.0.2:8000"), "ep-2"},
		"attribute":            {head.attribute("upstream.address", "10.0.0.3:8000"), "ep-3"},
		"metadata before both": {head.attribute("upstream.address", "10.0.0.3:8000").with("envoy.lb", "x-gateway-destination-endpoint-served", "10.0.0.2:8000"), "ep-2"},
		"nothing":              {head, "ep-1"},
		"unknown address":      {head.attribute("upstream.address", "10.9.9.9:8000"), "ep-1"},
		"no address":           {head.attribute("upstream.address", "garbage"), "ep-1"},
	} {
		l := newLab(t, labOptions{})
		l.run(errReset, join(wholeChat(), []message{c.headers}, ok()[1:])...)
		if o := l.only(); o.Endpoint != c.want || o.Picked != "ep-1" {
			t.Errorf("%s: served by %s, picked %s", name, o.Endpoint, o.Picked)
		}
		l.settled()
	}
}

// TestObservabilityModeIsNotAnswered: nothing that is sent there would be read.
func TestObservabilityModeIsNotAnswered(t *testing.T) {
	l := newLab(t, labOptions{})
	msgs := join(wholeChat(), ok())
	for _, m := range msgs {
		m.msg.ObservabilityMode = true
	}
	if tr := l.run(io.EOF, msgs...); len(tr.replies) != 0 || tr.err != nil {
		t.Errorf("replies %q, error %v", tr.kinds(), tr.err)
	}
	if l.count("began") != 0 {
		t.Error("an observed request was routed")
	}
	l.settled()
}

// TestUnknownMessagesAreIgnored: what the gateway may send one day needs no answer.
func TestUnknownMessagesAreIgnored(t *testing.T) {
	l := newLab(t, labOptions{})
	msgs := []message{}
	for _, m := range join(wholeChat(), ok()) {
		msgs = append(msgs, m, unknown())
	}
	msgs = append([]message{msgs[0]}, msgs[1:]...)
	if tr := l.run(errReset, msgs...); tr.kinds() != "headers body+$ HEADERS BODY+ BODY+$" {
		t.Errorf("replies %q", tr.kinds())
	}
	l.settled()
}

func TestDecisionHeader(t *testing.T) {
	l := newLab(t, labOptions{Options: Options{Answer: Answer{DecisionHeader: true, ClearRouteCache: true}}})
	tr := l.run(errReset, join(wholeChat(), ok())...)
	o := l.only()
	var got string
	for _, r := range tr.replies {
		for _, h := range r.GetResponseHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
			got += h.Header.Key + "=" + string(h.Header.RawValue)
		}
	}
	if got != "x-presage-decision="+o.ID {
		t.Errorf("set %q, decision %s", got, o.ID)
	}
	if !tr.replies[0].GetRequestHeaders().GetResponse().GetClearRouteCache() {
		t.Error("the route cache is not cleared")
	}
	l.server.SetAnswer(Answer{})
	tr = l.run(errReset, join(wholeChat(), ok())...)
	for _, r := range tr.replies {
		if r.GetResponseHeaders().GetResponse() != nil || r.GetRequestHeaders().GetResponse().GetClearRouteCache() {
			t.Errorf("changed answers are not in force: %v", r)
		}
	}
}

// TestArmHeader: with the decision's id goes the arm of an experiment.
func TestArmHeader(t *testing.T) {
	l := newLab(t, labOptions{policy: inArm{first{}}, Options: Options{Answer: Answer{DecisionHeader: true}}})
	tr := l.run(errReset, join(wholeChat(), ok())...)
	got := map[string]string{}
	for _, r := range tr.replies {
		for _, h := range r.GetResponseHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
			got[h.Header.Key] = string(h.Header.RawValue)
		}
	}
	if o := l.only(); got[ArmHeader] != "treatment" || got[DecisionHeader] != o.ID || o.Arm != "treatment" {
		t.Errorf("set %v, observed arm %q", got, o.Arm)
	}
}

// inArm puts every decision into an arm.
type inArm struct{ router.Policy }

func (p inArm) Route(q *router.Query, d *router.Decision) error {
	d.Arm = "treatment"
	return p.Policy.Route(q, d)
}

// TestLocalReplyOfTheGateway: the gateway may answer by itself while the body is still coming, and
// shows us that answer; the request is then given up.
func TestLocalReplyOfTheGateway(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, chat(fds), reqBody(chatBody[:5], false), respHeaders(false, "504"), respBody("timeout", true), reqBody(chatBody[5:], true))
	if want := "HEADERS BODY+$"; tr.kinds() != want || tr.err != nil {
		t.Errorf("replies %q, want %q; %v", tr.kinds(), want, tr.err)
	}
	if l.count("began") != 0 || l.count("ended client_gone") != 1 {
		t.Errorf("stats %v", l.stats)
	}
	l.settled()
}

// TestEarlyResponse: directions are independent; an answer may come before the request's end.
func TestEarlyResponse(t *testing.T) {
	l := newLab(t, labOptions{})
	tr := l.run(errReset, open(fds, false, ":method", "PUT", ":path", "/v1/files/x"), reqBody([]byte("a"), false), respHeaders(false, "200"), reqBody([]byte("b"), false), respBody("ok", true), reqBody([]byte("c"), true))
	sent, answered := tr.bodies()
	if want := "headers body+ HEADERS body+ BODY+$ body+$"; tr.kinds() != want || string(sent) != "abc" || string(answered) != "ok" || tr.err != nil {
		t.Errorf("replies %q, want %q; bodies %q %q; error %v", tr.kinds(), want, sent, answered, tr.err)
	}
	l.settled()
}

// TestHalfClosedStreams: the gateway closes its side early. While a full-duplex body is owed the
// stream must not end well: the gateway would send an empty one.
func TestHalfClosedStreams(t *testing.T) {
	l := newLab(t, labOptions{})
	all := join(wholeChat(), ok())
	for n := range all {
		tr := l.run(io.EOF, all[:n]...)
		owing := n == 1 || n == 2 || n == 4 || n == 5
		if (tr.err != nil) != owing {
			t.Errorf("after %d messages: %v, owing %v", n, tr.err, owing)
		}
		l.settled()
	}
}

func TestContextOfTheStreamReachesNobodyLonger(t *testing.T) {
	l := newLab(t, labOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if tr := l.play(ctx, errReset, wholeChat()[:2]...); len(tr.replies) != 0 || !isReset(tr.err) {
		t.Errorf("replies %q, error %v", tr.kinds(), tr.err)
	}
	l.settled()
}
