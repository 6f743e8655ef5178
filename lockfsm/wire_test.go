package lockfsm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestKindsArePinned checks the numbers of the kinds, because logs contain them. A new
// kind gets the next number.
func TestKindsArePinned(t *testing.T) {
	want := map[Kind]uint8{
		Stamp: 1, Born: 2, EndGrace: 3, Raise: 4, Open: 5, Attach: 6, Leaving: 7, Close: 8, Expire: 9, Acquire: 10,
		Release: 11, Cancel: 12,
		Adopt: 13, Evict: 14, Detach: 15, Put: 16, InUse: 17, SetValue: 18, Reserve: 19, Refuse: 20,
		Lapse: 21, Downgrade: 22, Lead: 23,
	}
	if RulesVersion >= marksVersion {
		want[markKind] = 200
	}
	for kind, number := range want {
		if uint8(kind) != number {
			t.Errorf("%v is %d on the wire, was %d", kind, kind, number)
		}
	}
	for n := range 256 {
		_, known := want[Kind(n)]
		if named := Kind(n).String() != "unknown kind"; named != known {
			t.Errorf("kind %d: pinned here %v, named %v", n, known, named)
		}
	}
}

// TestCodesArePinned checks the numbers of the codes, which instances send to each other. A new
// code gets the next number.
func TestCodesArePinned(t *testing.T) {
	want := map[Code]uint8{
		Done: 1, Granted: 2, Waiting: 3, Held: 4, Finished: 5, Stale: 6, NoSession: 7, NotBorn: 8, BadKey: 9,
		QueueFull:      10,
		TooManyEntries: 11, TooManySessions: 12, InGrace: 13, Unsupported: 14, Malformed: 15, Deadlock: 16,
		NotHeld: 17, Changed: 18,
		TooMuchData: 19, OverSessionBudget: 20, OverGroupBudget: 21, Kept: 22, Downgraded: 23, TooEarly: 24,
		NotAllowed: 25, NotForced: 26,
	}
	for code, number := range want {
		if uint8(code) != number {
			t.Errorf("%v is %d on the wire, was %d", code, code, number)
		}
	}
	for n := range 256 {
		_, known := want[Code(n)]
		if named := Code(n).String() != "unknown code"; named != known {
			t.Errorf("code %d: pinned here %v, named %v", n, known, named)
		}
	}
}

func everyKind() []Command {
	return []Command{
		{Rules: 1, Kind: Stamp, WallUnixMS: 1_700_000_000_000},
		{Rules: 1, Kind: Born},
		{Rules: 1, Kind: EndGrace},
		{Rules: 1, Kind: Raise, Version: 2},
		guestOpen(Command{Rules: 1, Nonce: Nonce{1, 15: 2}, TTL: 10 * time.Second, Life: 300,
			Record: []byte("host-a")}, 0x11,
			"lock a"),
		{Rules: 1, Kind: Attach, Session: 2097154, Epoch: 1, Number: 12, Nonce: Nonce{1, 15: 2}, Since: 200,
			Former: bytes.Repeat([]byte{7}, MaxFormerBytes),
			Live:   []Range{{1, 3}, {4, 4}, {9, 11}}},
		{Rules: 1, Kind: Leaving, Session: 2097154, Epoch: 1},
		{Rules: 1, Kind: Close, Session: 2097154, Epoch: 1},
		{Rules: 1, Kind: Expire, Session: 2097154, Term: 7},
		{Rules: 1, Kind: Expire, Session: 2097154, Number: 9, Term: 7, Cause: Revoked, Record: []byte("ops"),
			Value: []byte("hangs")},
		{Rules: 1, Kind: Expire, Session: 2097154, Term: 7, Cause: Superseded},
		{Rules: 1, Kind: Acquire, Session: 2097154, Epoch: 1, Number: 300, Key: "orders/42", Try: true},
		{Rules: 1, Kind: Release, Session: 2097154, Epoch: 1, Number: 300},
		{Rules: 1, Kind: Cancel, Session: 2097154, Epoch: 1, Number: 300},
		{Rules: 1, Kind: Adopt, TTL: 30 * time.Second, Settings: []byte("{}")},
		{Rules: 1, Kind: Adopt, SessionBytes: 1024, GroupBytes: 2048},
		{Rules: 1, Kind: Evict, Number: 9, Key: "a", Token: 5, Record: []byte("ops"), Value: []byte("hangs")},
		{
			Rules: 1, Kind: Acquire, Session: 2097154, Epoch: 1, Number: 300, Key: "a", Keys: []string{"b", "cc"},
			Mode: ModePermits, Permits: 2, Of: 300, Owner: 7, Most: 5,
			Value: []byte("why"), Notice: true, Delay: 300 * time.Millisecond,
		},
		{Rules: 1, Kind: Acquire, Session: 2097154, Epoch: 1, Number: 300, Key: "a", Mode: ModeIS},
		{Rules: 1, Kind: Detach, Session: 5, Epoch: 2, Number: 9},
		{Rules: 1, Kind: Detach, Session: 5, Epoch: 2, Number: 9, Value: []byte("its client died")},
		{Rules: 1, Kind: Acquire, Session: 5, Epoch: 2, Number: 9, Key: "a", Token: 77, Delay: time.Hour,
			Value: []byte("v"), Owner: 3, Notice: true},
		{Rules: 1, Kind: Put, Number: 9, Key: "a", Nonce: Nonce{1}, Revision: 5, Value: []byte("new")},
		{Rules: 1, Kind: Put, Number: 9, Key: "a", Nonce: Nonce{1}, Revision: 5},
		{Rules: 1, Kind: Acquire, Session: 5, Epoch: 2, Number: 9, Key: "a", Sticky: true, Try: true},
		{Rules: 1, Kind: Acquire, Session: 5, Epoch: 2, Number: 9, Key: "a", Sticky: true, Mode: ModeIS},
		{Rules: 1, Kind: InUse, Session: 5, Epoch: 2, Number: 9, Revision: 77, Token: 300},
		{Rules: 1, Kind: Lapse, Session: 5, Epoch: 2, Number: 9, Token: 300, Value: []byte("its client died")},
		{Rules: 1, Kind: Downgrade, Session: 5, Epoch: 2, Number: 9, Modes: []Mode{ModeIS, ModeS}},
		{Rules: 1, Kind: Acquire, Session: 3, Epoch: 2, Number: 9, Key: "a", Keys: []string{"b", "c"},
			Modes: []Mode{ModeIX, ModeIX, ModeX}, Try: true, Notice: true},
		{Rules: 1, Kind: Acquire, Session: 3, Epoch: 2, Number: 9, Key: "a", Mode: ModeS},
		{Rules: 1, Kind: Acquire, Session: 3, Epoch: 2, Number: 9, Key: "a", Mode: ModeU},
		{Rules: 1, Kind: Acquire, Session: 3, Epoch: 2, Number: 9, Key: "a", Upgrades: true, Owner: 7,
			Notice: true},
		{Rules: 1, Kind: Acquire, Session: 3, Epoch: 2, Number: 9, Key: "a", Upgrades: true, Owner: 7, Inner: 8},
		{Rules: 1, Kind: Put, Number: 9, Key: "a", Nonce: Nonce{1}, Revision: 5, Token: 7, Lock: "b"},
		{Rules: 1, Kind: SetValue, Number: 9, Opener: Opener{Instance: [16]byte{0x11}}, Key: "a", Token: 7,
			Seq: 300, Value: []byte("v")},
		{Rules: 1, Kind: Reserve, Number: 9, Count: 300},
		{Rules: 1, Kind: Evict, Number: 9, Key: "a", Token: 5, Record: []byte("ops"), Value: []byte("hangs"),
			Rights: rightsText("read a", "force a")},
		{Rules: 1, Kind: Open, Nonce: Nonce{1}, Opener: Opener{Instance: [16]byte{0x11}}},
		{Rules: 1, Kind: Refuse, Session: 7, Epoch: 2, Number: 9, Proof: []Place{{7, 9, 255}, {300, 1, 0}}},
		{Rules: 1, Kind: Lead, Number: 9, Record: []byte("ops"), Value: []byte("why")},
	}
}

func TestLayout(t *testing.T) {
	want := []string{
		"0b" + "0101000000" + "80d095ffbc31",
		"05" + "0102000000",
		"05" + "0103000000",
		"06" + "0104000000" + "02",
		"56" + "0105000000" + "01000000000000000000000000000002" + "11000000000000000000000000000000" +
			"ac02" +
			"22" + hex.EncodeToString([]byte("mortise-capability/1\nfor g\nlock a\n")) + "80c8afa025" + "06686f73742d61",
		"8201" + "01068280800101" + "0c" + "01000000000000000000000000000002" + "9103" +
			"60" + strings.Repeat("07", 96) + "03" + "0102" + "0100" + "0502",
		"08" + "01078280800101" + "00",
		"08" + "01088280800101" + "00",
		"0a" + "01098280800100" + "00" + "07" + "00",
		"14" + "01098280800100" + "09" + "07" + "06" + "036f7073" + "0568616e6773",
		"0c" + "01098280800100" + "00" + "07" + "07" + "0000",
		"14" + "010a8280800101" + "ac02" + "01" + "096f72646572732f3432",
		"09" + "010b8280800101" + "ac02",
		"09" + "010c8280800101" + "ac02",
		"0f" + "010d000000" + "80d88ee16f" + "00" + "00" + "027b7d",
		"0b" + "010d000000" + "00" + "8008" + "8010" + "00",
		"13" + "010e000009" + "05" + "0161" + "036f7073" + "0568616e6773" + "00",
		"1f" + "010a8280800101" + "ac02" + "fe01" + "0161" + "0502ac02" + "02" + "0162" + "026363" + "07" + "05" +
			"03776879" + "ac02",
		"0d" + "010a8280800101" + "ac02" + "02" + "0161" + "01",
		"06" + "010f050209" + "00",
		"15" + "010f050209" + "0f" + "69747320636c69656e742064696564",
		"11" + "010a050209" + "e803" + "0161" + "03" + "0176" + "80dddb01" + "4d",
		"1e" + "0110000009" + "01000000000000000000000000000000" + "05" + "0161" + "036e6577" + "00" + "00",
		"1b" + "0110000009" + "01000000000000000000000000000000" + "05" + "0161" + "00" + "00" + "00",
		"09" + "010a050209" + "8104" + "0161",
		"0a" + "010a050209" + "8204" + "0161" + "01",
		"08" + "0111050209" + "4d" + "ac02",
		"17" + "0115050209" + "ac02" + "0f" + "69747320636c69656e742064696564",
		"08" + "0116050209" + "02" + "0103",
		"11" + "010a030209" + "c508" + "0161" + "02" + "0162" + "0163" + "020200",
		"09" + "010a030209" + "02" + "0161" + "03",
		"09" + "010a030209" + "02" + "0161" + "04",
		"0a" + "010a030209" + "c810" + "0161" + "07",
		"0b" + "010a030209" + "8830" + "0161" + "07" + "08",
		"1c" + "0110000009" + "01000000000000000000000000000000" + "05" + "0161" + "00" + "07" + "0162",
		"1d" + "0112000009" + "11000000000000000000000000000000" + "00" + "07" + "ac02" + "0161" + "0176",
		"07" + "0113000009" + "ac02",
		"3d" + "010e000009" + "05" + "0161" + "036f7073" + "0568616e6773" + "2a" +
			hex.EncodeToString([]byte("mortise-capability/1\nfor g\nforce a\nread a\n")),
		"29" + "0105000000" + "01000000000000000000000000000000" + "11000000000000000000000000000000" + "00" + "00" +
			"00" + "00",
		"0d" + "0114070209" + "02" + "0709ff" + "ac020100",
		"0d" + "0117000009" + "036f7073" + "03776879",
	}
	for i, c := range everyKind() {
		if got := hex.EncodeToString(c.Append(nil)); got != want[i] {
			t.Errorf("%v\n got %s\nwant %s", c.Kind, got, want[i])
		}
	}
}

func TestRoundTrip(t *testing.T) {
	var batch []byte
	for _, c := range everyKind() {
		batch = c.Append(batch)
	}
	rest := batch
	for _, want := range everyKind() {
		var command []byte
		var err error
		command, rest, err = Next(rest)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(command)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
		if nonce, since, former, err := PeekAttach(command); (err == nil) != (want.Kind == Attach) ||
			err == nil && (nonce != want.Nonce || since != want.Since || !bytes.Equal(former, want.Former)) {
			t.Errorf("PeekAttach of %v: %x, %d, %x, %v", want.Kind, nonce, since, former, err)
		}
		head, err := Peek(command)
		if err != nil || head != (Header{want.Rules, want.Kind, want.Session, want.Epoch, want.Number}) {
			t.Errorf("Peek: %+v, %v", head, err)
		}
		for i := range command {
			if _, err := Decode(command[:i]); err == nil {
				t.Errorf("%v cut off after %d of %d bytes decodes", want.Kind, i, len(command))
			}
		}
		if _, err := Decode(append(bytes.Clone(command), 0)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%v with a trailing byte: %v", want.Kind, err)
		}
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
}

func upgradeWith(change func(*Command)) Command {
	c := Command{Kind: Acquire, Number: 2, Key: "a", Upgrades: true, Owner: 1}
	change(&c)
	return c
}

func TestZeroRulesMeansOne(t *testing.T) {
	c, err := Decode(encode(t, Command{Kind: Born}))
	if err != nil || c.Rules != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLongCommand(t *testing.T) {
	for _, n := range []int{100, 119, 120, 121, 122, 127, 128, 16_380, 16_390, 3_000_000} {
		want := Command{Rules: 1, Kind: Acquire, Key: strings.Repeat("k", n)}
		got, err := Decode(encode(t, want))
		if err != nil || got.Key != want.Key {
			t.Errorf("key of %d bytes: came back with %d, %v", n, len(got.Key), err)
		}
	}
}

func TestUndecodable(t *testing.T) {
	nonce := Nonce{1}
	for name, c := range map[string]Command{
		"kind 0":                {},
		"kind unknown":          {Kind: 199},
		"number too large":      {Kind: Release, Number: MaxNumber + 1},
		"negative stamp":        {Kind: Stamp, WallUnixMS: -1},
		"negative TTL":          {Kind: Open, Nonce: nonce, TTL: -1},
		"no nonce":              {Kind: Open},
		"attach without nonce":  {Kind: Attach, Number: 9},
		"record too long":       {Kind: Open, Nonce: nonce, Record: make([]byte, MaxRecordBytes+1)},
		"settings too long":     {Kind: Adopt, Settings: make([]byte, MaxSettingsBytes+1)},
		"permits of a mutex":    {Kind: Acquire, Number: 1, Key: "a", Mode: ModePermits, Permits: 1, Of: 1},
		"more than the total":   {Kind: Acquire, Number: 1, Key: "a", Mode: ModePermits, Permits: 3, Of: 2},
		"no permits":            {Kind: Acquire, Number: 1, Key: "a", Mode: ModePermits, Of: 2},
		"two shares":            {Kind: Acquire, Number: 1, Key: "a", Mode: ModePermits, Permits: 2},
		"a key twice":           {Kind: Acquire, Number: 1, Key: "a", Keys: []string{"b", "b"}},
		"keys not sorted":       {Kind: Acquire, Number: 1, Key: "b", Keys: []string{"a"}},
		"too many keys":         {Kind: Acquire, Number: 1, Key: "", Keys: manyKeys(MaxKeys)},
		"owner too large":       {Kind: Acquire, Number: 1, Key: "a", Owner: MaxNumber + 1},
		"owner of itself":       {Kind: Acquire, Number: 2, Key: "a", Owner: 2},
		"value too long":        {Kind: Acquire, Number: 1, Key: "a", Value: make([]byte, MaxValueBytes+1)},
		"delay too long":        {Kind: Acquire, Number: 1, Key: "a", Delay: MaxDelay + time.Millisecond},
		"delay too short":       {Kind: Acquire, Number: 1, Key: "a", Delay: time.Microsecond},
		"evict without a token": {Kind: Evict, Key: "a"},
		"taking up by trying":   {Kind: Acquire, Number: 1, Key: "a", Token: 5, Try: true},
		"taking up permits":     {Kind: Acquire, Number: 1, Key: "a", Token: 5, Mode: ModeIS},
		"taking up beyond":      {Kind: Acquire, Number: 1, Key: "a", Token: 1 << 63},
		"a sticky semaphore":    {Kind: Acquire, Number: 1, Key: "a", Sticky: true, Mode: ModePermits, Permits: 1, Of: 2},
		"sticky in two queues": {Kind: Acquire, Number: 1, Key: "a", Sticky: true, Mode: ModeIS,
			Keys: []string{"b"}},
		"a lapse without a reason": {Kind: Lapse, Session: 1, Number: 1, Token: 5},
		"a lapse without a token":  {Kind: Lapse, Session: 1, Number: 1, Value: []byte("v")},
		"a lapse that says too much": {Kind: Lapse, Session: 1, Number: 1, Token: 5,
			Value: make([]byte, MaxValueBytes+1)},
		"a move of the lead by none": {Kind: Lead, Value: []byte("v")},
		"a move without a reason":    {Kind: Lead, Record: []byte("r")},
		"put without a nonce":        {Kind: Put, Key: "a"},
		"modes and permits": {Kind: Acquire, Key: "a", Keys: []string{"b"}, Mode: ModeIS,
			Modes: []Mode{ModeS, ModeX}},
		"modes and a stay": {Kind: Acquire, Key: "a", Sticky: true, Mode: ModeS},
		"an unknown mode":  {Kind: Acquire, Key: "a", Mode: ModePermits + 1},
		"two upgradable keys": {Kind: Acquire, Key: "a", Keys: []string{"b"},
			Modes: []Mode{ModeU, ModeX}},
		"equal modes":             {Kind: Acquire, Key: "a", Keys: []string{"b"}, Modes: []Mode{ModeIS, ModeIS}},
		"the mode of one key":     {Kind: Acquire, Key: "a", Modes: []Mode{ModeS}},
		"permits among modes":     {Kind: Acquire, Key: "a", Keys: []string{"b"}, Modes: []Mode{ModeX, ModePermits}},
		"two upgradable, by mode": {Kind: Acquire, Key: "a", Keys: []string{"b"}, Mode: ModeU},
		"an upgradable hold with a delay": {Kind: Acquire, Key: "a", Mode: ModeU,
			Delay: time.Second},
		"an upgrade of nothing":      {Kind: Acquire, Number: 2, Key: "a", Upgrades: true},
		"an upgrade that tries":      upgradeWith(func(c *Command) { c.Try = true }),
		"a shared upgrade":           upgradeWith(func(c *Command) { c.Mode = ModeIS }),
		"an upgrade of two keys":     upgradeWith(func(c *Command) { c.Keys = []string{"b"} }),
		"an upgrade with a limit":    upgradeWith(func(c *Command) { c.Most = 1 }),
		"an upgrade with a value":    upgradeWith(func(c *Command) { c.Value = []byte("v") }),
		"an upgrade with a delay":    upgradeWith(func(c *Command) { c.Delay = time.Second }),
		"an upgrade of a token":      upgradeWith(func(c *Command) { c.Token = 5 }),
		"an upgrade under itself":    upgradeWith(func(c *Command) { c.Inner = 2 }),
		"an upgrade twice under one": upgradeWith(func(c *Command) { c.Inner = 1 }),
		"two owners and no upgrade":  {Kind: Acquire, Number: 3, Key: "a", Owner: 1, Inner: 2},
		"a sticky upgrade":           upgradeWith(func(c *Command) { c.Sticky = true }),
		"an upgrade that has a mode": upgradeWith(func(c *Command) { c.Mode = ModeU }),
		"too few modes":              {Kind: Acquire, Key: "a", Keys: []string{"b"}, Modes: []Mode{ModeX}},
		"a value without a seq":      {Kind: SetValue, Key: "a", Token: 1},
		"put without a token":        {Kind: Put, Key: "a", Nonce: Nonce{1}, Lock: "b"},
		"a refusal without proof":    {Kind: Refuse},
		"a refusal, long proof":      {Kind: Refuse, Proof: make([]Place, MaxProof+1)},
		"a reserve of nothing":       {Kind: Reserve},
		"a reserve of too many":      {Kind: Reserve, Count: MaxReserved + 1},
		"a downgrade to nothing":     {Kind: Downgrade, Number: 1},
		"a downgrade to permits":     {Kind: Downgrade, Number: 1, Modes: []Mode{ModePermits}},
		"a downgrade of too many":    {Kind: Downgrade, Number: 1, Modes: make([]Mode, MaxKeys+1)},
		"put of too much":            {Kind: Put, Key: "a", Nonce: Nonce{1}, Value: make([]byte, MaxDataBytes+1)},
		"evict beyond tokens":        {Kind: Evict, Key: "a", Token: 1 << 63},
		"adopt a negative TTL":       {Kind: Adopt, TTL: -1},
		"range backwards":            {Kind: Attach, Number: 9, Nonce: nonce, Live: []Range{{5, 4}}},
		"ranges overlap":             {Kind: Attach, Number: 9, Nonce: nonce, Live: []Range{{1, 4}, {4, 5}}},
		"ranges not sorted":          {Kind: Attach, Number: 9, Nonce: nonce, Live: []Range{{5, 6}, {1, 2}}},
		"range from 0":               {Kind: Attach, Number: 9, Nonce: nonce, Live: []Range{{0, 2}}},
		"range up to next":           {Kind: Attach, Number: 9, Nonce: nonce, Live: []Range{{8, 9}}},
		"range to the very end":      {Kind: Attach, Number: 9, Nonce: nonce, Live: []Range{{1, math.MaxUint64}}},
		"range past the end":         {Kind: Attach, Number: 9, Nonce: nonce, Live: []Range{{math.MaxUint64, 5}}},
	} {
		if got, err := Decode(encode(t, c)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := Decode(encode(t, Command{Rules: RulesVersion + 1, Kind: Born})); !errors.Is(err, ErrRules) {
		t.Errorf("of newer rules: %v", err)
	}
	if got, err := Decode(encode(t,
		Command{Kind: Open, Nonce: nonce, Record: make([]byte, MaxRecordBytes)})); err != nil {
		t.Errorf("the longest record: %+v, %v", got, err)
	}
	if got, err := Decode(encode(t, Command{Kind: Adopt, Settings: make([]byte, MaxSettingsBytes)})); err != nil {
		t.Errorf("the longest settings: %+v, %v", got, err)
	}
}

// TestLyingLengths checks that a few bytes with a large length cause no large allocation.
func TestLyingLengths(t *testing.T) {
	huge := "ffffffffff7f"
	for name, text := range map[string]string{
		"command":                         huge + "01",
		"size that is no shortest varint": "8500" + "0102000000",
		"live":                            "1d" + "0106000009" + "01000000000000000000000000000000" + huge + "0101",
		"live, negative as an int": "1f" + "0106000009" + "01000000000000000000000000000000" +
			"ffffffffffffffffff01",
		"key":      "0d" + "010a000009" + "00" + huge + "61",
		"settings": "0f" + "010d000000" + "00" + huge,
		"record":   "1d" + "0105000000" + "01000000000000000000000000000000" + "00" + huge,
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(name, err)
		}
		const times = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			command, _, err := Next(b)
			if err == nil {
				_, err = Decode(command)
			}
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) / times
		if allocated > 1024 {
			t.Errorf("%s: %d bytes are allocated for %d bytes of input", name, allocated, len(b))
		}
	}
}

func TestDecodeSharesNothing(t *testing.T) {
	b := encode(t, Command{Kind: Open, Nonce: Nonce{1}, Record: []byte("abc")})
	c, err := Decode(b)
	clear(b)
	if err != nil || string(c.Record) != "abc" {
		t.Errorf("%q, %v", c.Record, err)
	}
}

func TestPeekDoesNotAllocate(t *testing.T) {
	command := encode(t, everyKind()[9])
	if n := testing.AllocsPerRun(100, func() { _, _ = Peek(command) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func manyKeys(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%04d", i))
	}
	return keys
}
