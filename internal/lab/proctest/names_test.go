//go:build linux

package proctest

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const service = "orders.test"

// names is the name server of a world, for one name.
type names struct {
	conn net.PacketConn

	mu     sync.Mutex                          // guards the fields below
	answer func(asker netip.Addr) []netip.Addr // nil means that the server does not answer
}

func serveNames(t *testing.T, m *machine) *names {
	t.Helper()
	s := &names{}
	err := inSpace(m, func() (err error) {
		s.conn, err = net.ListenPacket("udp4", m.ip+":53")
		return err
	})
	if err != nil {
		t.Fatalf("name server: %v", err)
	}
	t.Cleanup(func() { s.conn.Close() })
	go s.serve()
	return s
}

// inSpace runs f, which may open sockets, in a machine's namespace, on a new thread.
func inSpace(m *machine, f func() error) error {
	done := make(chan error)
	go func() {
		// The thread is never unlocked, because a thread in another namespace must not run other
		// goroutines.
		runtime.LockOSThread()
		space, err := os.Open("/run/netns/" + m.space)
		if err == nil {
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
			space.Close()
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// say sets the function that returns the addresses for each machine that asks.
func (s *names) say(answer func(asker netip.Addr) []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *names) serve() {
	packet := make([]byte, 512)
	for {
		n, from, err := s.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		if reply := respond(packet[:n], from.(*net.UDPAddr).AddrPort().Addr(), answer); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

const (
	typeA      = 1
	noSuchName = 3
)

func respond(packet []byte, asker netip.Addr, answer func(netip.Addr) []netip.Addr) []byte {
	name, end := question(packet)
	if end == 0 || answer == nil {
		return nil
	}
	var found []netip.Addr
	code := byte(noSuchName)
	if strings.EqualFold(name, service) {
		code = 0
		if binary.BigEndian.Uint16(packet[end-4:]) == typeA {
			found = answer(asker)
		}
	}
	reply := slices.Clone(packet[:end])
	reply[2], reply[3] = 0x84|packet[2]&1, code // an authoritative answer
	binary.BigEndian.PutUint16(reply[6:], uint16(len(found)))
	clear(reply[8:12])
	for _, a := range found {
		// A pointer to the name at offset 12, the class IN, and a TTL of one second.
		reply = append(reply, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 1, 0, 4)
		reply = append(reply, a.AsSlice()...)
	}
	return reply
}

// question returns the name in a query, and the offset at which the question ends. The offset is 0
// if there is no question.
func question(packet []byte) (name string, end int) {
	if len(packet) < 12 || binary.BigEndian.Uint16(packet[4:]) != 1 {
		return "", 0
	}
	var labels []string
	at := 12
	for at < len(packet) && packet[at] != 0 {
		next := at + 1 + int(packet[at])
		if next > len(packet) {
			return "", 0
		}
		labels = append(labels, string(packet[at+1:next]))
		at = next
	}
	if at += 5; at > len(packet) {
		return "", 0
	}
	return strings.Join(labels, "."), at
}
