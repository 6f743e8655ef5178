package swim

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/hashicorp/memberlist"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func text(b []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(b, 0xa0|byte(len(s))), s...)
	}
	return append(binary.BigEndian.AppendUint16(append(b, 0xda), uint16(len(s))), s...)
}

// aliveBody returns memberlist's message that a member is alive, without the type byte.
func aliveBody(name string, incarnation uint32, m gossip.Meta) []byte {
	b := []byte{0x86}
	b = binary.BigEndian.AppendUint32(append(text(b, "Incarnation"), 0xce), incarnation)
	b = text(text(b, "Node"), name)
	b = text(text(b, "Addr"), "\x0a\x42\x00\x01")
	b = binary.BigEndian.AppendUint16(append(text(b, "Port"), 0xcd), 7947)
	b = text(text(b, "Meta"), string(appendMeta(nil, m)))
	return text(text(b, "Vsn"), "\x01\x05\x05\x00\x00\x00")
}

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

// TestUnsoundPackets checks that packets are dropped if decoding them would cost far more than
// their size.
func TestUnsoundPackets(t *testing.T) {
	alive := append([]byte{4}, aliveBody("x", 1, gossip.Meta{Instance: nodeidtest.ID(1)})...)
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
		"long":                   {append(alive, make([]byte, maxPacketBytes)...), false},
		"a label cut short":      {[]byte{msgLabel, 200, 1, 2}, false},
	} {
		if got := sound(c.packet); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func header(nodes, user uint32) []byte {
	b := binary.BigEndian.AppendUint32(append(text([]byte{msgPushPull, 0x83}, "Nodes"), 0xce), nodes)
	b = binary.BigEndian.AppendUint32(append(text(b, "UserStateLen"), 0xce), user)
	return append(text(b, "Join"), 0xc2)
}

// TestUnsoundStreams checks that a byte stream with a bad head is rejected before memberlist
// receives a byte, and that no stream exceeds maxExchangeBytes. Otherwise memberlist would
// allocate as much memory as a sender announces.
func TestUnsoundStreams(t *testing.T) {
	for name, c := range map[string]struct {
		head []byte
		want bool
	}{
		"an exchange":             {header(0, 0), true},
		"with a label":            {append([]byte{msgLabel, 1, 'x'}, header(0, 0)...), true},
		"a probe":                 {[]byte("\x00\x82\xa5SeqNo\x07\xa4Node\xa1x"), true},
		"too many members":        {header(maxExchangeNodes+1, 0), false},
		"a million members":       {header(1<<20, 0), false},
		"a state of another kind": {header(1, 20<<20), false},
		"compressed":              {[]byte{9, 0x82}, false},
		"encrypted":               {[]byte{10, 0, 0, 0, 0}, false},
		"a message of the user":   {[]byte{8, 0x81}, false},
		"a field twice": {append(text(append(text([]byte{msgPushPull, 0x83}, "Nodes"), 1), "Nodes"), 2),
			false},
		"a name of another encoding": {[]byte{msgPushPull, 0x83, 0xd9, 5}, false},
		"an unknown field":           {append(text([]byte{msgPushPull, 0x83}, "Other"), 1), false},
		"a negative number":          {append(text([]byte{msgPushPull, 0x83}, "Nodes"), 0xff), false},
		"a text for a number":        {append(text([]byte{msgPushPull, 0x83}, "Nodes"), 0xa1, 'x'), false},
		"another map":                {[]byte{msgPushPull, 0xdf, 0xff, 0xff, 0xff, 0xff}, false},
		"a label within the label":   {[]byte{msgLabel, 1, 'x', msgLabel, 1, 'x'}, false},
	} {
		near, far := net.Pipe()
		go func() { _, _ = far.Write(append(c.head, "the rest"...)); far.Close() }()
		got, err := io.ReadAll(newExchange(near))
		if c.want && (err != nil || string(got) != string(c.head)+"the rest") ||
			!c.want && (!errors.Is(err, errUnsound) || len(got) > 0) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		near.Close()
	}
	largest := header(maxExchangeNodes, 0)
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
	if n != maxExchangeBytes || !errors.Is(err, errUnsound) {
		t.Errorf("an endless stream: %d bytes, %v", n, err)
	}
	near, far = net.Pipe()
	go func() {
		_, err := far.Write(header(maxExchangeNodes, 0))
		for err == nil {
			_, err = far.Write(long(maxPacketBytes / 2))
		}
	}()
	n, err = io.Copy(io.Discard, newExchange(near))
	near.Close()
	if n > maxExchangeBytes || n < maxExchangeBytes-maxPacketBytes || !errors.Is(err, errUnsound) {
		t.Errorf("members without end: %d bytes, %v", n, err)
	}
}

// long returns a member with one text.
func long(size int) []byte {
	b := binary.BigEndian.AppendUint16(append(text([]byte{0x81}, "Meta"), 0xda), uint16(size))
	return append(b, make([]byte, size)...)
}

// exchanged returns one member of an exchange. The given msgpack bytes are the member's protocol
// versions.
func exchanged(versions ...byte) []byte {
	b := text(text([]byte{0x84}, "Name"), "x")
	b = append(text(b, "Incarnation"), 0xce, 0, 0, 0, 1)
	b = append(text(b, "State"), 0)
	return append(text(b, "Vsn"), versions...)
}

// TestUnsoundMembers checks that memberlist does not receive a member that has some protocol
// versions but not all, since memberlist before v0.7.0 panics at such a member. memberlist does
// receive the members that precede it.
func TestUnsoundMembers(t *testing.T) {
	sound := exchanged(0xa6, 1, 5, 2, 2, 5, 4)
	for name, c := range map[string]struct {
		member []byte
		want   bool
	}{
		"as memberlist sends it":  {sound, true},
		"bytes":                   {exchanged(0xc4, 6, 1, 5, 2, 2, 5, 4), true},
		"a long text":             {exchanged(0xda, 0, 6, 1, 5, 2, 2, 5, 4), true},
		"no versions":             {exchanged(0xa0), true},
		"nothing for versions":    {exchanged(0xc0), true},
		"one version":             {exchanged(0xa1, 1), false},
		"five versions":           {exchanged(0xc4, 5, 1, 5, 2, 2, 5), false},
		"a list of versions":      {exchanged(0x92, 1, 5), false},
		"a number for versions":   {exchanged(1), false},
		"a text that is too long": {exchanged(0xdb, 0, 0, 0x20, 0), false},
		"a text of two gigabytes": {exchanged(0xdb, 0x7f, 0xff, 0xff, 0xff), false},
		"a long member":           {long(maxPacketBytes), false},
		"a list":                  {[]byte{0x97, 1, 2, 3, 4, 5, 6, 7}, false},
		"a map of any size":       {[]byte{0xde, 0, 7}, false},
		"a map for a value":       {append(text([]byte{0x81}, "Meta"), 0x80), false},
		"versions that come twice": {append(append(text([]byte{0x82}, "Vsn"), 0xc0),
			append(text(nil, "Vsn"), 0xa1, 1)...), false},
		"a name of another encoding": {append([]byte{0x81, 0xd9, 3}, "Vsn\xa1\x01"...), false},
	} {
		near, far := net.Pipe()
		before := append(header(2, 0), sound...)
		go func() { _, _ = far.Write(append(before, c.member...)); far.Close() }()
		got, err := io.ReadAll(newExchange(near))
		if c.want && (err != nil || string(got) != string(before)+string(c.member)) ||
			!c.want && (!errors.Is(err, errUnsound) || string(got) != string(before)) {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(before)+len(c.member), err)
		}
		near.Close()
	}
}
