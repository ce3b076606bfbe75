package zmtp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

const maxTopics = 1024 // subscriptions of one peer

// Publisher is a PUB socket. Its methods are safe for concurrent use.
type Publisher struct {
	depth   int
	dropped atomic.Uint64

	mu    sync.Mutex
	peers []*subscriber
}

// subscriber is one SUB peer.
type subscriber struct {
	queue  chan [][]byte
	topics [][]byte // under Publisher.mu
}

// NewPublisher returns a PUB socket that keeps up to so many messages for each subscriber that does
// not read (the high-water mark).
func NewPublisher(depth int) *Publisher { return &Publisher{depth: depth} }

// Dropped returns how many messages subscribers were too slow for.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }

// Send publishes a message; its first frame is the topic. It never waits: a subscriber whose queue
// is full misses it. The frames must not be changed afterwards.
func (p *Publisher) Send(frames ...[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.peers {
		if !slices.ContainsFunc(s.topics, func(t []byte) bool { return bytes.HasPrefix(frames[0], t) }) {
			continue
		}
		select {
		case s.queue <- frames:
		default:
			p.dropped.Add(1)
		}
	}
}

// Serve accepts subscribers until ctx ends.
func (p *Publisher) Serve(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, p.handle)
}

func (p *Publisher) handle(ctx context.Context, c net.Conn) {
	z, err := accept(c, "PUB", "SUB", "XSUB")
	if err != nil {
		return
	}
	s := &subscriber{queue: make(chan [][]byte, p.depth)}
	p.mu.Lock()
	p.peers = append(p.peers, s)
	p.mu.Unlock()
	pongs := make(chan []byte, 1)
	ctx, gone := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		if z.publish(ctx, s.queue, pongs) != nil {
			_ = c.Close() // ends the reader
		}
	})
	for {
		m, err := z.message(func(command []byte) error { return p.command(s, command, pongs) })
		if err != nil || len(m) != 1 || p.subscription(s, m[0]) != nil {
			break
		}
	}
	gone()
	writer.Wait()
	p.mu.Lock()
	p.peers = slices.DeleteFunc(p.peers, func(o *subscriber) bool { return o == s })
	p.mu.Unlock()
}

// command acts on SUBSCRIBE, CANCEL and PING of ZMTP 3.1; others are ignored.
func (p *Publisher) command(s *subscriber, command []byte, pongs chan<- []byte) error {
	if topic, ok := bytes.CutPrefix(command, []byte("\x09SUBSCRIBE")); ok {
		return p.subscribe(s, topic)
	}
	if topic, ok := bytes.CutPrefix(command, []byte("\x06CANCEL")); ok {
		p.unsubscribe(s, topic)
	}
	if answer := pong(command); answer != nil {
		select {
		case pongs <- answer:
		default: // the last one is still to be sent, and says as much
		}
	}
	return nil
}

var errTopics = errors.New("too many subscriptions")

// subscription acts on a message of a subscriber: 1 and a topic subscribes, 0 and a topic cancels.
func (p *Publisher) subscription(s *subscriber, m []byte) error {
	switch {
	case len(m) > 0 && m[0] == 1:
		return p.subscribe(s, m[1:])
	case len(m) > 0 && m[0] == 0:
		p.unsubscribe(s, m[1:])
	}
	return nil
}

func (p *Publisher) subscribe(s *subscriber, topic []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(s.topics) >= maxTopics {
		return errTopics
	}
	s.topics = append(s.topics, topic)
	return nil
}

func (p *Publisher) unsubscribe(s *subscriber, topic []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(s.topics, func(t []byte) bool { return bytes.Equal(t, topic) }); i >= 0 {
		s.topics = slices.Delete(s.topics, i, i+1)
	}
}

// publish writes a subscriber's messages until ctx ends, flushing when there are no more.
func (z *conn) publish(ctx context.Context, queue <-chan [][]byte, pongs <-chan []byte) error {
	for {
		var err error
		select {
		case m := <-queue:
			err = z.send(m)
		case b := <-pongs:
			err = z.write(flagCommand, b)
		case <-ctx.Done():
			return nil
		}
		if err == nil && len(queue) == 0 {
			err = z.w.Flush()
		}
		if err != nil {
			return err
		}
	}
}
