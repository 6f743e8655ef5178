package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

// text encodes a string or bytes as memberlist's msgpack does.
func text(b []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(b, 0xa0|byte(len(s))), s...)
	}
	return append(binary.BigEndian.AppendUint16(append(b, 0xda), uint16(len(s))), s...)
}

// aliveBody is memberlist's message that a member is here, without its type.
func aliveBody(name string, incarnation uint32, m meta) []byte {
	b := []byte{0x86}
	b = binary.BigEndian.AppendUint32(append(text(b, "Incarnation"), 0xce), incarnation)
	b = text(text(b, "Node"), name)
	b = text(text(b, "Addr"), "\x0a\x42\x00\x01")
	b = binary.BigEndian.AppendUint16(append(text(b, "Port"), 0xcd), 7947)
	b = text(text(b, "Meta"), string(m.append(nil)))
	return text(text(b, "Vsn"), "\x01\x05\x05\x00\x00\x00")
}

// compound puts messages into one packet.
func compound(parts ...[]byte) []byte {
	b := []byte{msgCompound, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func labelled(b []byte, label string) []byte {
	b, err := memberlist.AddLabelHeaderToPacket(b, label)
	if err != nil {
		panic(err)
	}
	return b
}

// Ghosts that a process with the secret makes up are taken in up to a bound, and the instances go
// on seeing each other and working.
func TestGhostsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(3)
		f.raft(2 * time.Second)
		attacker := f.net.listen("10.0.0.66:7947")
		label := f.nodes[0].cfg.Label
		const ghosts = 3 * membersMax
		for i := 0; i < ghosts; i += 4 {
			var parts [][]byte
			for n := i; n < i+4; n++ {
				m := meta{Instance: nodeidtest.ID(uint64(n) + 1e6), Name: fmt.Sprint("ghost-", n), Addr: "10.66.0.1:7947"}
				parts = append(parts, append([]byte{4}, aliveBody(fmt.Sprintf("%024d", n), 1, m)...))
			}
			packet := labelled(compound(parts...), label)
			if !sound(packet) {
				t.Fatal("the packet of the test is not sound")
			}
			if err := attacker.WriteTo(packet, addrOf(0)); err != nil {
				t.Fatal(err)
			}
			if i%64 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(time.Second)
		n := f.nodes[0]
		members, real := n.Members(), 0
		for _, m := range members {
			if !strings.HasPrefix(m.Name, "ghost") {
				real++
			}
		}
		if len(members) > membersMax+1 || len(members) < membersMax/2 || real != 3 {
			t.Errorf("%d members, %d of them real", len(members), real)
		}
		if known := n.gossip.list.NumMembers(); known > membersMax {
			t.Errorf("memberlist knows %d", known)
		}
		if mine := n.own.peers; len(mine) > membersMax {
			t.Errorf("the owner keeps %d", len(mine))
		}
	})
}

// A place of the roster is free again when memberlist has forgotten the member, not before, and
// what is said late of it changes nothing.
func TestRosterGivesPlacesBack(t *testing.T) {
	now := time.Now()
	r := newRoster(3)
	for _, name := range []string{"a", "b", "c"} {
		if !r.admit(name, now) {
			t.Fatal(name)
		}
		r.joined(name)
	}
	if r.admit("d", now.Add(time.Hour)) {
		t.Error("a fourth of three")
	}
	r.left("b", now)
	for after, want := range map[time.Duration]bool{time.Second: false, 32 * time.Second: false} {
		if !r.admit("b", now.Add(after)) || r.admit("d", now.Add(after)) != want {
			t.Errorf("after %v", after)
		}
	}
	if !r.admit("d", now.Add(33*time.Second)) || r.admit("b", now.Add(33*time.Second)) {
		t.Error("the place is not free")
	}
	if !r.admit("e", now.Add(2*time.Hour)) {
		t.Error("a place whose member never came is kept for ever")
	}
	if len(r.known) != 3 {
		t.Errorf("%d are known", len(r.known))
	}
}

// However much gossip says, the owner looks at it once in a while, at the latest word of each
// member.
func TestNewsAreGathered(t *testing.T) {
	var h hearsay
	now := time.Now()
	looks := 0
	for i := range 10_000 {
		wait, first := h.add(fmt.Sprint(i%100), meta{At: uint64(i)}, true, now)
		if first {
			if looks++; wait != 0 {
				t.Errorf("the first look waits %v", wait)
			}
		}
	}
	names, latest := h.take(now)
	if looks != 1 || len(names) != 100 || latest["7"].meta.At != 9907 || latest["7"].left {
		t.Errorf("%d looks, %d names, %+v", looks, len(names), latest["7"])
	}
	if wait, first := h.add("x", meta{}, true, now.Add(hearsayEvery/2)); !first || wait != hearsayEvery/2 {
		t.Error(wait, first)
	}
	h.add("x", meta{}, false, now)
	h.add("x", meta{At: 5}, true, now)
	h.add("x", meta{At: 6}, true, now)
	if _, latest := h.take(now); latest["x"] != (hearing{meta{At: 6}, true, true}) {
		t.Errorf("%+v", latest["x"])
	}
}

// Packets that cost more than they weigh are dropped.
func TestUnsoundPackets(t *testing.T) {
	alive := append([]byte{4}, aliveBody("x", 1, meta{Instance: nodeidtest.ID(1)})...)
	crc := func(b []byte) []byte { return append([]byte{msgCRC, 1, 2, 3, 4}, b...) }
	for name, c := range map[string]struct {
		packet []byte
		want   bool
	}{
		"one message":            {alive, true},
		"with a label":           {labelled(alive, "label"), true},
		"with a checksum":        {labelled(crc(alive), "label"), true},
		"several":                {labelled(crc(compound(alive, alive)), "label"), true},
		"compressed":             {[]byte{9, 0x82}, false},
		"compressed in a label":  {labelled([]byte{9, 0x82}, "label"), false},
		"compressed in several":  {compound(alive, []byte{9, 0x82}), false},
		"several within several": {compound(alive, compound(alive)), false},
		"a checksum within":      {compound(crc(alive)), false},
		"encrypted":              {[]byte{10, 1, 2}, false},
		"of another program":     {[]byte{8, 1, 2}, false},
		"empty":                  {nil, false},
		"an empty part":          {compound(alive, nil), false},
		"cut":                    {compound(alive, alive)[:len(alive)], false},
		"cut in its lengths":     {[]byte{msgCompound, 200, 0, 1}, false},
		"long":                   {append(alive, make([]byte, packetBytesMax)...), false},
		"a label cut short":      {[]byte{msgLabel, 200, 1, 2}, false},
	} {
		if got := sound(c.packet); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// header is the head of an exchange of everything.
func header(nodes, user uint32) []byte {
	b := binary.BigEndian.AppendUint32(append(text([]byte{msgPushPull, 0x83}, "Nodes"), 0xce), nodes)
	b = binary.BigEndian.AppendUint32(append(text(b, "UserStateLen"), 0xce), user)
	return append(text(b, "Join"), 0xc2)
}

// A byte stream is judged by its head and cut at a bound, so that memberlist never reserves what
// was only announced.
func TestUnsoundStreams(t *testing.T) {
	for name, c := range map[string]struct {
		head []byte
		want bool
	}{
		"an exchange":              {header(0, 0), true},
		"with a label":             {append([]byte{msgLabel, 1, 'x'}, header(0, 0)...), true},
		"a probe":                  {[]byte("\x00\x82\xa5SeqNo\x07\xa4Node\xa1x"), true},
		"too many members":         {header(exchangeNodesMax+1, 0), false},
		"a million members":        {header(1<<20, 0), false},
		"a state of another kind":  {header(1, 20<<20), false},
		"compressed":               {[]byte{9, 0x82}, false},
		"encrypted":                {[]byte{10, 0, 0, 0, 0}, false},
		"a message of the user":    {[]byte{8, 0x81}, false},
		"a field twice":            {append(text(append(text([]byte{msgPushPull, 0x83}, "Nodes"), 1), "Nodes"), 2), false},
		"a field nobody knows":     {append(text([]byte{msgPushPull, 0x83}, "Other"), 1), false},
		"a negative number":        {append(text([]byte{msgPushPull, 0x83}, "Nodes"), 0xff), false},
		"a text for a number":      {append(text([]byte{msgPushPull, 0x83}, "Nodes"), 0xa1, 'x'), false},
		"another map":              {[]byte{msgPushPull, 0xdf, 0xff, 0xff, 0xff, 0xff}, false},
		"a label within the label": {[]byte{msgLabel, 1, 'x', msgLabel, 1, 'x'}, false},
	} {
		near, far := net.Pipe()
		go func() { _, _ = far.Write(append(c.head, "the rest"...)); far.Close() }()
		got, err := io.ReadAll(newExchange(near))
		if c.want && (err != nil || string(got) != string(c.head)+"the rest") || !c.want && (!errors.Is(err, errUnsound) || len(got) > 0) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		near.Close()
	}
	largest := header(exchangeNodesMax, 0)
	near, far := net.Pipe()
	go func() { _, _ = far.Write(largest) }()
	if _, err := io.ReadFull(newExchange(near), make([]byte, len(largest))); err != nil {
		t.Error("the largest exchange:", err)
	}
	near.Close()
	near, far = net.Pipe()
	go func() {
		_, err := far.Write(header(0, 0))
		for err == nil {
			_, err = far.Write(make([]byte, 64<<10))
		}
	}()
	n, err := io.Copy(io.Discard, newExchange(near))
	near.Close()
	if n != exchangeBytesMax || !errors.Is(err, errUnsound) {
		t.Errorf("an endless stream: %d bytes, %v", n, err)
	}
}

// exchanged is a member of an exchange, with these protocol versions in the encoding of msgpack.
func exchanged(versions ...byte) []byte {
	b := text(text([]byte{0x84}, "Name"), "x")
	b = append(text(b, "Incarnation"), 0xce, 0, 0, 0, 1)
	b = append(text(b, "State"), 0)
	return append(text(b, "Vsn"), versions...)
}

// memberlist before v0.7.0 panics at a member that names some protocol versions and not all: it never
// sees one. The members before it are handed on.
func TestUnsoundMembers(t *testing.T) {
	sound := exchanged(0xa6, 1, 5, 2, 2, 5, 4)
	for name, c := range map[string]struct {
		member []byte
		want   bool
	}{
		"as memberlist sends it":     {sound, true},
		"bytes":                      {exchanged(0xc4, 6, 1, 5, 2, 2, 5, 4), true},
		"a long text":                {exchanged(0xda, 0, 6, 1, 5, 2, 2, 5, 4), true},
		"no versions":                {exchanged(0xa0), true},
		"nothing for versions":       {exchanged(0xc0), true},
		"one version":                {exchanged(0xa1, 1), false},
		"five versions":              {exchanged(0xc4, 5, 1, 5, 2, 2, 5), false},
		"a list of versions":         {exchanged(0x92, 1, 5), false},
		"a number for versions":      {exchanged(1), false},
		"a text that is too long":    {exchanged(0xdb, 0, 0, 0x20, 0), false},
		"a text of two gigabytes":    {exchanged(0xdb, 0x7f, 0xff, 0xff, 0xff), false},
		"a list":                     {[]byte{0x97, 1, 2, 3, 4, 5, 6, 7}, false},
		"a map of any size":          {[]byte{0xde, 0, 7}, false},
		"a map for a value":          {append(text([]byte{0x81}, "Meta"), 0x80), false},
		"versions that come twice":   {append(append(text([]byte{0x82}, "Vsn"), 0xc0), append(text(nil, "Vsn"), 0xa1, 1)...), false},
		"a name of another encoding": {append([]byte{0x81, 0xd9, 3}, "Vsn\xa1\x01"...), false},
	} {
		near, far := net.Pipe()
		before := append(header(2, 0), sound...)
		go func() { _, _ = far.Write(append(before, c.member...)); far.Close() }()
		got, err := io.ReadAll(newExchange(near))
		if c.want && (err != nil || string(got) != string(before)+string(c.member)) || !c.want && (!errors.Is(err, errUnsound) || string(got) != string(before)) {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(before)+len(c.member), err)
		}
		near.Close()
	}
}

// Exchanges that announce a million members, lie about lengths or cut the versions of a member short
// hold next to nothing and stop nothing, and honest ones go on.
func TestHostileExchangesHoldNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		f.born(2)
		f.raft(time.Second)
		attacker := f.net.listen("10.0.0.66:7947")
		label := f.nodes[0].cfg.Label
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		lie := append(text([]byte{0x81}, "Name"), 0xdb, 0x7f, 0xff, 0xff, 0xff, 'x')
		for _, attack := range [][]byte{
			header(1<<20, 0), header(1, 20<<20), append(header(exchangeNodesMax, 0), lie...), append(header(1, 0), exchanged(0xa1, 1)...),
		} {
			for range 16 {
				conn, err := attacker.DialStream(t.Context(), addrOf(0))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go func() { _, _ = conn.Write(labelled(attack, label)) }()
				go func() { _, _ = io.Copy(io.Discard, conn) }() // memberlist answers before it looks at the members
			}
			synctest.Wait()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 64<<20 {
			t.Errorf("%d MiB are held", held>>20)
		}
		f.raft(time.Minute)
		if !f.allSeeAll() {
			t.Error("not all see all")
		}
	})
}
