package lockfsm

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

type script struct {
	m       *Machine
	founded Charter
	names   map[string]SessionID // session IDs by their names in the transcript
	labels  []string             // the same names in the order in which they were added
	index   uint64
	err     error
}

func (s *script) run(words []string) string {
	s.err = nil
	name, args := words[0], arguments{words: words[1:]}
	var printed string
	switch name {
	case "group":
		printed = s.group(&args)
	case "events":
		printed = s.events()
	case "ends":
		printed = s.ends()
	case "usage":
		printed = s.usage()
	case "restore":
		printed = s.restore()
	case "raw":
		printed = s.raw(&args)
	default:
		term := args.number("at", 1)
		command := s.command(name, &args)
		if err := cmpErr(s.err, args.rest()); err != nil {
			return "cannot read this line: " + err.Error() + "\n"
		}
		printed = s.apply(term, command)
	}
	if err := cmpErr(s.err, args.rest()); err != nil {
		return "cannot read this line: " + err.Error() + "\n"
	}
	return printed
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *script) group(a *arguments) string {
	limits := DefaultLimits()
	limit := func(name string, value *uint32) { *value = uint32(a.number(name, uint64(*value))) }
	limit("keybytes", &limits.KeyBytes)
	limit("waiters", &limits.WaitersPerLock)
	limit("entries", &limits.EntriesPerSession)
	limit("sessions", &limits.Sessions)
	limits.SessionBytes = a.number("sessionbytes", limits.SessionBytes)
	limits.GroupBytes = a.number("groupbytes", limits.GroupBytes)
	c := Charter{
		Group: 1, FoundedUnixMS: 1_000_000, Rules: uint32(a.number("rules", 1)),
		SessionTTL: a.duration("ttl", 10*time.Second), Grace: a.duration("grace", 0), Limits: limits,
		Settings: []byte(a.value("settings", "")),
	}
	m, err := newMachine(c, uint32(a.number("supported", 1)))
	if err != nil {
		return err.Error() + "\n"
	}
	s.m, s.founded = m, c
	return s.state()
}

func (s *script) restore() string {
	snapshot := s.m.Snapshot(nil)
	m, err := restore(snapshot, s.m.supported)
	if err != nil {
		return err.Error() + "\n"
	}
	s.m = m
	if !bytes.Equal(m.Snapshot(nil), snapshot) {
		return "the snapshot of the restored machine differs\n"
	}
	return fmt.Sprintf("restored from %d bytes\n", len(snapshot)) + s.state()
}

func (s *script) raw(a *arguments) string {
	b, err := hex.DecodeString(strings.Join(a.words, ""))
	a.words = nil
	s.err = err
	var out strings.Builder
	s.index++
	s.m.ApplyEntry(s.index, 1, b, func(r *Result) { out.WriteString(s.result(*r)) })
	return out.String() + s.state()
}

func (s *script) apply(term uint64, c Command) string {
	s.index++
	framed := c.Append(nil)
	command, _, err := Next(framed)
	if err != nil {
		return err.Error() + "\n"
	}
	r := s.m.Apply(s.index, term, command)
	if c.Kind == Open && r.Code == Done && s.label(r.Session) == "nobody" {
		name := strings.TrimRight(string(c.Nonce[:]), "\x00")
		s.names[name] = r.Session
		s.labels = append(s.labels, name)
	}
	if r.Detached != 0 {
		name := s.label(c.Session) + "'s"
		s.names[name] = r.Detached
		s.labels = append(s.labels, name)
	}
	return s.result(r) + s.state()
}

// command parses a line. A session has the name that its open line gave it. The default epoch is
// the present one, except in attach, where it is the next one.
func (s *script) command(name string, a *arguments) Command {
	c := Command{Rules: uint32(a.number("needs", 1))}
	kinds := map[string]Kind{}
	for k := Stamp; k <= Lead; k++ {
		kinds[k.String()] = k
	}
	c.Kind = kinds[name]
	switch c.Kind {
	case 0:
		s.err = fmt.Errorf("no command %q", name)
	case Born, EndGrace:
	case Stamp:
		c.WallUnixMS = s.m.charter.FoundedUnixMS + a.duration("after", 0).Milliseconds()
	case Raise:
		c.Version = uint32(a.number("to", 0))
	case Evict:
		c.Key = a.word()
		c.Token = Token(a.number("token", 0) + uint64(s.m.charter.firstRevision()))
		c.Record, c.Value = []byte(a.value("by", "")), []byte(a.value("reason", ""))
	case Put:
		c.Key, c.Value = a.word(), []byte(a.value("value", ""))
		if after := a.number("after", 0); after != 0 {
			c.Revision = Revision(after + uint64(s.m.charter.firstRevision()))
		}
		copy(c.Nonce[:], a.value("nonce", "n"))
		if c.Lock = a.value("lock", ""); c.Lock != "" {
			c.Token = Token(a.number("token", 0) + uint64(s.m.charter.firstRevision()))
		}
	case SetValue:
		c.Key, c.Value, c.Seq = a.word(), []byte(a.value("value", "")), a.number("seq", 1)
		c.Token = Token(a.number("token", 0) + uint64(s.m.charter.firstRevision()))
	case Lead:
		c.Record, c.Value = []byte(a.value("by", "")), []byte(a.value("reason", ""))
	case Reserve:
		c.Count = uint32(a.number("count", 1))
	case Adopt:
		c.TTL = a.duration("ttl", 0)
		c.Settings = []byte(a.value("settings", ""))
		c.SessionBytes, c.GroupBytes = a.number("sessionbytes", 0), a.number("groupbytes", 0)
	case Open:
		copy(c.Nonce[:], a.word())
		c.TTL = a.duration("ttl", 0)
		c.Record = []byte(a.value("record", ""))
	default:
		s.ofSession(&c, a)
	}
	return c
}

func (s *script) ofSession(c *Command, a *arguments) {
	name, number, _ := strings.Cut(a.word(), "/")
	id, known := s.names[name]
	if !known {
		s.err = fmt.Errorf("no session has had the name %q", name)
		return
	}
	c.Session = id
	var present Epoch
	if now := s.m.sessions.byID[id]; now != nil {
		present = now.epoch
	}
	if c.Kind == Attach {
		present++
	}
	if c.Kind != Expire {
		c.Epoch = Epoch(a.number("epoch", uint64(present)))
	}
	switch c.Kind {
	case Attach:
		copy(c.Nonce[:], a.value("nonce", name))
		c.Number = Number(a.number("next", 1))
		c.Live = a.ranges("live")
	case Expire:
		c.Term = a.number("term", 1)
		if c.Cause = map[string]Cause{"revoked": Revoked, "superseded": Superseded}[a.value("cause", "")]; c.Cause != 0 {
			c.Record, c.Value = []byte(a.value("by", "")), []byte(a.value("because", ""))
		}
	case Acquire, Release, Cancel, Detach, InUse, Lapse, Downgrade:
		n, err := strconv.ParseUint(number, 10, 64)
		s.err = err
		c.Number = Number(n)
	}
	if c.Kind == InUse {
		first := uint64(s.m.charter.firstRevision())
		c.Revision, c.Token = Revision(a.number("place", 0)+first), Token(a.number("token", 0)+first)
	}
	if c.Kind == Downgrade {
		if c.Modes = a.modes("to"); c.Modes == nil {
			c.Modes = s.readers(c, a.flag("tree"))
		}
	}
	if c.Kind == Lapse {
		c.Token = Token(a.number("token", 0) + uint64(s.m.charter.firstRevision()))
	}
	if c.Kind == Detach || c.Kind == Lapse {
		c.Value = []byte(a.value("because", ""))
	}
	if c.Kind == Acquire {
		c.Key = a.word()
		if key, err := strconv.Unquote(c.Key); err == nil {
			c.Key = key
		}
		c.Try = a.flag("try")
		s.shape(c, a)
	}
}

var modeNames = []string{ModeX: "x", ModeIS: "is", ModeIX: "ix", ModeS: "s", ModeU: "u"}

// readers returns the modes that make the hold of a Downgrade shared.
func (s *script) readers(c *Command, tree bool) []Mode {
	if now := s.m.sessions.byID[c.Session]; now != nil && now.request(c.Number) != nil {
		return now.request(c.Number).grant().Readers(tree)
	}
	return []Mode{ModeIS}
}

// setModes sets the modes of an Acquire with one of them for each key.
func (c *Command) setModes(all []Mode) {
	if g := (Grant{Keys: c.Keys, Modes: all}); all != nil {
		c.Ask(&g)
	}
}

func (a *arguments) modes(name string) (all []Mode) {
	for _, mode := range strings.Split(a.value(name, ""), ",") {
		if i := slices.Index(modeNames, mode); i >= 0 {
			all = append(all, Mode(i))
		}
	}
	return all
}

func (s *script) shape(c *Command, a *arguments) {
	if a.flag("shared") {
		c.Mode = ModeIS
	}
	if permits := a.value("permits", ""); permits != "" {
		c.Mode = ModePermits
		_, err := fmt.Sscanf(permits, "%d/%d", &c.Permits, &c.Of)
		a.note(err)
	}
	if keys := a.value("with", ""); keys != "" {
		c.Keys = strings.Split(keys, ",")
	}
	c.setModes(a.modes("modes"))
	c.Upgrades, c.Owner = a.flag("upgrade"), Number(a.number("under", 0))
	c.Most = uint32(a.number("most", 0))
	c.Value = []byte(a.value("value", ""))
	c.Notice, c.Sticky = a.flag("notice"), a.flag("sticky")
	c.Delay = a.duration("delay", 0)
	if token := a.number("resume", 0); token != 0 {
		c.Token = Token(token + uint64(s.m.charter.firstRevision()))
	}
}
