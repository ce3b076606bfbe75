package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Bits of a frame's flags.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

const (
	maxFrame         = 64 << 10 // of what a peer sends: subscriptions and requests are short
	maxParts         = 16       // of a message from a peer
	handshakeTimeout = 10 * time.Second
)

// conn is a connection past its handshake.
type conn struct {
	net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

func newConn(c net.Conn, r io.Reader, w io.Writer) *conn {
	return &conn{c, bufio.NewReader(r), bufio.NewWriter(w)}
}

// greeting is what both sides send first: signature, version 3.0, mechanism NULL, no server role.
func greeting() []byte {
	var g [64]byte
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:32], "NULL")
	return g[:]
}

// accept shakes hands as a socket of the given type with a peer of one of the others.
func accept(c net.Conn, socket string, peers ...string) (*conn, error) {
	z := newConn(c, c, c)
	if err := c.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	if _, err := z.w.Write(greeting()); err != nil {
		return nil, err
	}
	if err := z.w.Flush(); err != nil {
		return nil, err
	}
	var theirs [64]byte
	if _, err := io.ReadFull(z.r, theirs[:]); err != nil {
		return nil, err
	}
	switch {
	case theirs[0] != 0xff || theirs[9]&1 != 1:
		return nil, errors.New("not a ZeroMQ peer")
	case theirs[10] < 3:
		return nil, fmt.Errorf("peer speaks ZMTP %d, not 3", theirs[10])
	case string(theirs[12:17]) != "NULL\x00":
		return nil, fmt.Errorf("peer wants mechanism %q, not NULL", theirs[12:32])
	}
	ready := appendProperty([]byte("\x05READY"), "Socket-Type", socket)
	ready = appendProperty(ready, "Identity", "")
	if err := z.write(flagCommand, ready); err != nil {
		return nil, err
	}
	if err := z.w.Flush(); err != nil {
		return nil, err
	}
	flags, body, err := z.read()
	if err != nil {
		return nil, err
	}
	kind, err := socketType(flags, body)
	if err != nil {
		return nil, err
	}
	for _, p := range peers {
		if kind == p {
			return z, c.SetDeadline(time.Time{})
		}
	}
	return nil, fmt.Errorf("peer is a %q socket, which cannot talk to %s", kind, socket)
}

func appendProperty(b []byte, name, value string) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// socketType reads the property of that name from a READY command.
func socketType(flags byte, body []byte) (string, error) {
	const ready = "\x05READY"
	if flags&flagCommand == 0 || len(body) < len(ready) || string(body[:len(ready)]) != ready {
		return "", errors.New("peer did not get ready")
	}
	for b := body[len(ready):]; len(b) > 0; {
		n := int(b[0])
		if len(b) < 1+n+4 {
			break
		}
		size := binary.BigEndian.Uint32(b[1+n:])
		if uint64(len(b)) < uint64(1+n+4)+uint64(size) {
			break
		}
		name, value := string(b[1:1+n]), string(b[1+n+4:1+n+4+int(size)])
		if name == "Socket-Type" {
			return value, nil
		}
		b = b[1+n+4+int(size):]
	}
	return "", errors.New("peer names no socket type")
}

// read reads one frame.
func (z *conn) read() (flags byte, body []byte, err error) {
	if flags, err = z.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	var size uint64
	if flags&flagLong != 0 {
		var b [8]byte
		if _, err := io.ReadFull(z.r, b[:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(b[:])
	} else {
		b, err := z.r.ReadByte()
		if err != nil {
			return 0, nil, err
		}
		size = uint64(b)
	}
	if size > maxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes, more than %d", size, maxFrame)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(z.r, body)
	return flags, body, err
}

// message reads the frames of one message; commands between messages go to command.
func (z *conn) message(command func([]byte) error) ([][]byte, error) {
	var parts [][]byte
	for {
		flags, body, err := z.read()
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			if err := command(body); err != nil {
				return nil, err
			}
			continue
		}
		if parts = append(parts, body); len(parts) > maxParts {
			return nil, fmt.Errorf("message of more than %d frames", maxParts)
		}
		if flags&flagMore == 0 {
			return parts, nil
		}
	}
}

// write buffers one frame.
func (z *conn) write(flags byte, body []byte) error {
	head := make([]byte, 0, 9)
	if len(body) > 255 {
		head = binary.BigEndian.AppendUint64(append(head, flags|flagLong), uint64(len(body)))
	} else {
		head = append(head, flags, byte(len(body)))
	}
	if _, err := z.w.Write(head); err != nil {
		return err
	}
	_, err := z.w.Write(body)
	return err
}

// send buffers one message.
func (z *conn) send(parts [][]byte) error {
	for i, p := range parts {
		var more byte
		if i < len(parts)-1 {
			more = flagMore
		}
		if err := z.write(more, p); err != nil {
			return err
		}
	}
	return nil
}

// pong answers a PING command (ZMTP 3.1: time to live, then a context to send back), and nil for any
// other.
func pong(command []byte) []byte {
	const ping = "\x04PING"
	if len(command) < len(ping)+2 || string(command[:len(ping)]) != ping {
		return nil
	}
	return append([]byte("\x04PONG"), command[len(ping)+2:]...)
}
