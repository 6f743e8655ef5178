package swim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
)

// This file limits the cost of a packet or a byte stream before memberlist reads it. memberlist
// itself accepts compressed messages that expand to 40 MiB, messages nested without limit, and an
// exchange of a million members. mortise never sends these messages.

const (
	maxPacketBytes   = 4 << 10        // memberlist's packets have at most 1,400 bytes plus the label
	maxExchangeBytes = 4 << 20        // per stream; a full exchange of 4,096 members has 1 to 3 MiB
	maxExchangeNodes = 2 * maxMembers // per exchange, including members that have left
)

const (
	msgPing     = 0
	msgAck      = 2
	msgPushPull = 6
	msgCompound = 7
	msgNack     = 11
	msgCRC      = 12
	msgError    = 13
	msgLabel    = 244
)

// sound reports whether the packet may come from an instance of mortise: it is short, not
// compressed, and has at most one level of nested messages.
func sound(b []byte) bool {
	if len(b) > maxPacketBytes {
		return false
	}
	if len(b) > 2 && b[0] == msgLabel {
		b = b[min(len(b), 2+int(b[1])):]
	}
	if len(b) > 5 && b[0] == msgCRC {
		b = b[5:]
	}
	if len(b) < 2 || b[0] != msgCompound {
		return len(b) > 0 && plain(b[0])
	}
	n := int(b[1])
	b = b[2:]
	if len(b) < 2*n {
		return false
	}
	sizes, b := b[:2*n], b[2*n:]
	for ; len(sizes) > 0; sizes = sizes[2:] {
		size := int(binary.BigEndian.Uint16(sizes))
		if size == 0 || size > len(b) || !plain(b[0]) {
			return false
		}
		b = b[size:]
	}
	return true
}

// plain reports whether mortise sends messages of this type in packets.
func plain(kind byte) bool { return kind < msgPushPull || kind == msgNack }

var errUnsound = errors.New("cluster: gossip: malformed byte stream")

// exchange is the reading side of a byte stream of gossip. It checks the head of the message before
// it returns a byte, and returns at most maxExchangeBytes in total.
type exchange struct {
	net.Conn
	in      *bufio.Reader
	judged  bool
	members int    // announced members that are not checked yet
	head    []byte // bytes read for checking and not returned yet
	left    int    // bytes that may still be read
	err     error
}

func newExchange(conn net.Conn) *exchange {
	return &exchange{Conn: conn, in: bufio.NewReader(conn), left: maxExchangeBytes}
}

// Read implements net.Conn. Calls must not be concurrent.
func (e *exchange) Read(b []byte) (int, error) {
	if !e.judged {
		e.judged = true
		e.err = e.judge()
	}
	if len(e.head) == 0 && e.members > 0 && e.err == nil {
		e.members--
		e.err = e.judgeMember()
	}
	if len(e.head) > 0 && e.err == nil {
		n := copy(b, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.err != nil {
		return 0, e.err
	}
	if len(b) == 0 {
		return 0, nil
	}
	if e.left == 0 {
		e.err = errUnsound
		return 0, e.err
	}
	n, err := e.in.Read(b[:min(len(b), e.left)])
	e.left -= n
	return n, err
}

func (e *exchange) more(n int) ([]byte, error) {
	if n > e.left {
		return nil, errUnsound
	}
	start := len(e.head)
	e.head = append(e.head, make([]byte, n)...)
	e.left -= n
	_, err := io.ReadFull(e.in, e.head[start:])
	return e.head[start:], err
}

func (e *exchange) judge() error {
	kind, err := e.more(1)
	if err != nil {
		return err
	}
	if kind[0] == msgLabel {
		size, err := e.more(1)
		if err == nil {
			_, err = e.more(int(size[0]))
		}
		if err == nil {
			kind, err = e.more(1)
		}
		if err != nil {
			return err
		}
	}
	switch kind[0] {
	case msgPing, msgAck, msgError:
		e.left = min(e.left, maxPacketBytes)
		return nil
	case msgPushPull:
		return e.judgeExchange()
	}
	return errUnsound
}

// judgeExchange checks the header of a full exchange: a msgpack map of three fields, in any order.
func (e *exchange) judgeExchange() error {
	fields, err := e.more(1)
	if err != nil {
		return err
	}
	if fields[0] != 0x83 {
		return errUnsound
	}
	most := map[string]uint64{"Nodes": maxExchangeNodes, "UserStateLen": 0, "Join": 1}
	for range 3 {
		size, err := e.more(1)
		if err != nil {
			return err
		}
		if size[0] < 0xa4 || size[0] > 0xac {
			return errUnsound
		}
		name, err := e.more(int(size[0] & 0x1f))
		if err != nil {
			return err
		}
		limit, known := most[strings.Clone(string(name))]
		value, err := e.number()
		if err != nil {
			return err
		}
		if !known || value > limit {
			return errUnsound
		}
		if string(name) == "Nodes" {
			e.members = int(value)
		}
		delete(most, string(name))
	}
	return nil
}

func (e *exchange) number() (uint64, error) {
	kind, err := e.more(1)
	if err != nil {
		return 0, err
	}
	k := kind[0]
	switch {
	case k <= 0x7f:
		return uint64(k), nil
	case k == 0xc2 || k == 0xc3:
		return uint64(k - 0xc2), nil
	case k < 0xcc || k > 0xd3:
		return 0, errUnsound
	}
	b, err := e.more(1 << ((k - 0xcc) % 4))
	value := uint64(0)
	for _, x := range b {
		value = value<<8 | uint64(x)
	}
	return value, err
}
