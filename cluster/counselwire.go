package cluster

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/voters"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// What instances ask each other about the voters, beside the messages of birth: a version byte, a kind byte that birth does not use, and
// fields without names in fixed order; numbers as uvarints, texts and lists with their length before them. Decoding is strict and bounded:
// what is longer, shorter or larger than it may be is refused as a whole.
const (
	counselVersion = 1

	kindConsultation = 0x41 // group, instance, raft ID: how do the voters stand, and may that replica stop?
	kindCounsel      = 0x42 // the answer of who leads
	kindElsewhere    = 0x43 // the answer of who does not: instance and address of who does, 0 and "" if that is not known
	kindProbe        = 0x44 // is that instance there?
	kindHere         = 0x45 // it is

	whyBytesMax  = 1024
	listedMax    = 64 // replicas in a list
	counselFlags = 5
)

var errCounsel = errors.New("cluster: malformed or unknown message about voters")

// consultation is the question of Consult.
type consultation struct {
	Group    uint64
	Instance nodeid.ID // that asks: by its connection, not in the message
	Raft     uint64    // about which replica
}

func (q consultation) append(b []byte) []byte {
	b = append(b, counselVersion, kindConsultation)
	b = binary.AppendUvarint(b, q.Group)
	return binary.AppendUvarint(b, q.Raft)
}

func decodeConsultation(b []byte) (consultation, error) {
	r := openCounsel(b, kindConsultation)
	q := consultation{Group: r.uint(), Raft: r.uint()}
	return q, r.done()
}

// elsewhere is the answer "not me, ask ...".
type elsewhere struct {
	Instance nodeid.ID
	Addr     string
}

func (e elsewhere) append(b []byte) []byte {
	b = append(b, counselVersion, kindElsewhere)
	return appendText(append(b, e.Instance[:]...), e.Addr, gossip.AddrBytesMax)
}

func decodeElsewhere(b []byte) (elsewhere, error) {
	r := openCounsel(b, kindElsewhere)
	e := elsewhere{Instance: r.instance(), Addr: r.text(gossip.AddrBytesMax)}
	return e, r.done()
}

func appendProbe(b []byte) []byte { return append(b, counselVersion, kindProbe) }
func appendHere(b []byte) []byte  { return append(b, counselVersion, kindHere) }
func isProbe(b []byte) bool       { return openCounsel(b, kindProbe).done() == nil }

// append encodes what people and programs need of a Counsel: of the next step only its kind and why.
func appendCounsel(b []byte, c *Counsel) []byte {
	b = append(b, counselVersion, kindCounsel)
	flags := byte(0)
	for i, set := range [counselFlags]bool{c.MayStop, c.AllLeaving, c.Due, c.Known, c.Report.Quorum} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, flags)
	missing, weak := c.Report.Missing, c.Report.CannotSurvive
	missing, weak = missing[:min(len(missing), listedMax)], weak[:min(len(weak), listedMax)]
	b = append(b, c.Leader[:]...)
	for _, v := range [...]uint64{uint64(max(c.Report.Eligible, 0)), uint64(max(c.Report.Target, 0)), uint64(len(missing))} {
		b = binary.AppendUvarint(b, v)
	}
	for _, m := range missing {
		b = append(binary.AppendUvarint(b, m.ID), m.Instance[:]...)
		b = binary.AppendUvarint(appendText(b, m.Name, gossip.NameBytesMax), uint64(max(m.SilentFor, 0)))
	}
	b = binary.AppendUvarint(b, uint64(len(weak)))
	for _, id := range weak {
		b = binary.AppendUvarint(b, id)
	}
	b = appendText(append(b, byte(c.Report.Next.Kind)), c.Report.Next.Why, whyBytesMax)
	remarks := c.Remarks[:min(len(c.Remarks), listedMax)]
	b = binary.AppendUvarint(b, uint64(len(remarks)))
	for _, text := range remarks {
		b = appendText(b, text, whyBytesMax)
	}
	return b
}

func decodeCounsel(b []byte) (Counsel, error) {
	r := openCounsel(b, kindCounsel)
	flags := r.byte(1<<counselFlags - 1)
	c := Counsel{
		MayStop: flags&1 != 0, AllLeaving: flags&2 != 0, Due: flags&4 != 0, Known: flags&8 != 0, Leader: r.instance(),
		Report: voters.Report{Quorum: flags&16 != 0, Due: flags&4 != 0, Eligible: int(r.upTo(1 << 30)), Target: int(r.upTo(1 << 30))},
	}
	for range r.length(4) {
		c.Report.Missing = append(c.Report.Missing, voters.Missing{
			ID: r.uint(), Instance: r.instance(), Name: r.text(gossip.NameBytesMax), SilentFor: time.Duration(r.upTo(1<<63 - 1)),
		})
	}
	for range r.length(1) {
		c.Report.CannotSurvive = append(c.Report.CannotSurvive, r.uint())
	}
	c.Report.Next = voters.Step{Kind: voters.Kind(r.byte(255)), Why: r.text(whyBytesMax)} // a later version may know further kinds
	for range r.length(1) {
		c.Remarks = append(c.Remarks, r.text(whyBytesMax))
	}
	return c, r.done()
}

// appendText appends a text, as far as it is one, shortened to what may be sent, at the border of a character.
func appendText(b []byte, s string, limit int) []byte {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// instance reads an instance ID.
func (r *counselReader) instance() (id nodeid.ID) {
	if len(r.b) < nodeid.Size {
		r.b, r.bad = nil, true
		return id
	}
	id, r.b = nodeid.ID(r.b[:nodeid.Size]), r.b[nodeid.Size:]
	return id
}

// counselReader takes fields off a message. After the first fault everything reads as zero, and done reports it.
type counselReader struct {
	b   []byte
	bad bool
}

func openCounsel(b []byte, kind byte) *counselReader {
	if len(b) < 2 || b[0] != counselVersion || b[1] != kind {
		return &counselReader{bad: true}
	}
	return &counselReader{b: b[2:]}
}

func (r *counselReader) fail() { r.b, r.bad = nil, true }

func (r *counselReader) byte(limit byte) byte {
	if len(r.b) == 0 || r.b[0] > limit {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *counselReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 { // one value, one encoding
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *counselReader) upTo(limit uint64) uint64 {
	v := r.uint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

func (r *counselReader) text(limit int) string {
	n := int(r.upTo(uint64(limit)))
	if n > len(r.b) || !utf8.Valid(r.b[:n]) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// length reads the length of a list whose elements take at least size bytes each.
func (r *counselReader) length(size int) int {
	n := int(r.upTo(listedMax))
	if n*size > len(r.b) {
		r.fail()
		return 0
	}
	return n
}

func (r *counselReader) done() error {
	if r.bad || len(r.b) > 0 {
		return errCounsel
	}
	return nil
}
