package swim

import (
	"bytes"
	"encoding/binary"
	"net"
	"strconv"
)

// The functions in this file help to end pending probes when gossip closes. They depend on two
// formats of memberlist's packets. If a later version of memberlist changes these formats, a few of
// its goroutines end some seconds after Close, and a test fails.

// probeSequence returns the sequence number of a probe in an outgoing packet. In msgpack it is the
// text SeqNo, followed by an unsigned number. A packet that only looks like a probe does no harm.
func probeSequence(packet []byte) (uint32, bool) {
	_, b, found := bytes.Cut(packet, []byte("\xa5SeqNo"))
	switch {
	case !found || len(b) < 1:
		return 0, false
	case b[0] <= 0x7f:
		return uint32(b[0]), true
	case b[0] == 0xcc && len(b) >= 2:
		return uint32(b[1]), true
	case b[0] == 0xcd && len(b) >= 3:
		return uint32(binary.BigEndian.Uint16(b[1:])), true
	case b[0] == 0xce && len(b) >= 5:
		return binary.BigEndian.Uint32(b[1:]), true
	}
	return 0, false
}

// ackPacket returns the answer to the probe with the number seq: message type 2, then the map
// {SeqNo: seq, Payload: nil} in msgpack.
func ackPacket(seq uint32) []byte {
	b := append([]byte{2, 0x82}, "\xa5SeqNo\xce"...)
	b = binary.BigEndian.AppendUint32(b, seq)
	return append(b, "\xa7Payload\xc0"...)
}

type address string

func (address) Network() string  { return "mortise" }
func (a address) String() string { return string(a) }

func joinIP(ip net.IP, port int) string { return net.JoinHostPort(ip.String(), strconv.Itoa(port)) }

func trimLine(line []byte) []byte { return bytes.TrimRight(line, "\n") }
