package queries

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// keyFields are the fields of questions that name keys, each with the rights that it needs. An
// asterisk behind a right marks the field as a prefix.
var keyFields = map[protoreflect.FullName][]string{
	"mortise.query.v1.KeyRequest.key":        {"read"},
	"mortise.query.v1.ListRequest.prefix":    {"read*"},
	"mortise.query.v1.Cursor.key":            {"read"},
	"mortise.query.v1.HoldersRequest.key":    {"read"},
	"mortise.query.v1.HoldRequest.key":       {"read"},
	"mortise.query.v1.PutRequest.key":        {"write"},
	"mortise.query.v1.PutRequest.lock":       {"read"},
	"mortise.query.v1.ValueRequest.key":      {"lock"},
	"mortise.query.v1.EvictRequest.key":      {"force", "read"},
	"mortise.query.v1.WatchRequest.prefixes": {"read*"},
}

// otherFields are the texts and bytes of questions that name no key.
var otherFields = map[protoreflect.FullName]string{
	"mortise.query.v1.Origin.rights":              "replaced by the rights of the connection; see settle",
	"mortise.query.v1.Origin.asker":               "replaced by the sender; see settle",
	"mortise.query.v1.PutRequest.data":            "what is stored",
	"mortise.query.v1.PutRequest.nonce":           "identifies a repetition",
	"mortise.query.v1.ValueRequest.value":         "what is stored",
	"mortise.query.v1.EvictRequest.by":            "shown to the holder",
	"mortise.query.v1.EvictRequest.reason":        "shown to the holder",
	"mortise.query.v1.EndSessionRequest.by":       "only a full instance may end a session",
	"mortise.query.v1.EndSessionRequest.reason":   "only a full instance may end a session",
	"mortise.query.v1.TransferLeadRequest.name":   "only a full instance may move the leadership",
	"mortise.query.v1.TransferLeadRequest.by":     "only a full instance may move the leadership",
	"mortise.query.v1.TransferLeadRequest.reason": "only a full instance may move the leadership",
	"mortise.query.v1.RecoverRequest.group":       "only a full instance may recover",
	"mortise.query.v1.FoundRequest.question":      "of the founding; no lock is involved",
	"mortise.query.v1.DiskFault.state":            "only a full instance may report its disk",
	"mortise.query.v1.DiskFault.cause":            "only a full instance may report its disk",
	"mortise.query.v1.DiskFault.remedy":           "only a full instance may report its disk",
}

// fill sets every field of a message, and gives each text and each bytes a value with the name of
// the field. It calls see for these.
func fill(m protoreflect.Message, see func(protoreflect.FieldDescriptor)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		v := protoreflect.Value{}
		switch f.Kind() {
		case protoreflect.StringKind:
			see(f)
			v = protoreflect.ValueOfString(keyOf(f))
		case protoreflect.BytesKind:
			see(f)
			v = protoreflect.ValueOfBytes([]byte(keyOf(f)))
		case protoreflect.BoolKind:
			v = protoreflect.ValueOfBool(true)
		case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
			v = protoreflect.ValueOfUint32(1)
		case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
			v = protoreflect.ValueOfUint64(1)
		case protoreflect.Int64Kind:
			v = protoreflect.ValueOfInt64(1)
		case protoreflect.MessageKind:
			if !f.IsList() {
				fill(m.Mutable(f).Message(), see)
				continue
			}
			v = m.Mutable(f).List().NewElement()
			fill(v.Message(), see)
		default:
			panic(fmt.Sprintf("%s has the kind %s; add it here", f.FullName(), f.Kind()))
		}
		if f.IsList() {
			m.Mutable(f).List().Append(v)
		} else {
			m.Set(f, v)
		}
	}
}

func keyOf(f protoreflect.FieldDescriptor) string { return strings.ToLower(string(f.FullName())) }

// allRights returns the words of a capability for all key fields except one of the rights of one.
func allRights(fields []protoreflect.FieldDescriptor, but protoreflect.FieldDescriptor, without string) []string {
	words := []string{"read nothing"}
	for _, f := range fields {
		for _, right := range keyFields[f.FullName()] {
			if f == but && right == without {
				continue
			}
			verb, all := strings.CutSuffix(right, "*")
			word := verb + " " + keyOf(f)
			if all {
				word += "*"
			}
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// TestEachKeyOfAQuestionNeedsItsRight reads the questions from their descriptors. It gives each
// field a key of its own, and takes away one right for one of them.
func TestEachKeyOfAQuestionNeedsItsRight(t *testing.T) {
	r := newRig()
	seen := make(map[protoreflect.FullName]bool)
	for _, service := range r.services.List {
		name := protoreflect.FullName(service.Desc.ServiceName)
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Fatal(err)
		}
		methods := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
			if err != nil {
				t.Fatal(err)
			}
			var fields []protoreflect.FieldDescriptor
			q := kind.New()
			fill(q, func(f protoreflect.FieldDescriptor) {
				seen[f.FullName()] = true
				switch {
				case len(keyFields[f.FullName()]) > 0:
					fields = append(fields, f)
				case otherFields[f.FullName()] == "":
					t.Errorf("%s has no row: which right does it need?", f.FullName())
				}
			})
			r.keysOf(t, fmt.Sprintf("/%s/%s", name, m.Name()), q.Interface(), fields)
		}
	}
	for f := range keyFields {
		if !seen[f] {
			t.Errorf("no question has the field %s", f)
		}
	}
	for f := range otherFields {
		if !seen[f] {
			t.Errorf("no question has the field %s", f)
		}
	}
}

func (r *rig) keysOf(t *testing.T, method string, q proto.Message, fields []protoreflect.FieldDescriptor) {
	t.Helper()
	if len(fields) == 0 {
		return // the rules of TestAskersAndRights
	}
	from := func(words []string) (answered bool, verb, key string) {
		c := rights(t, words...)
		tier := capability.TierOf(c)
		if strings.Contains(method, ".Query/") {
			tier = capability.Member // the tier that may ask the leader; it has these rights alone
		}
		answered, denied := r.ask(t, peer(tier, c), method, proto.Clone(q))
		if denied != nil {
			verb, key = denied.Verb, denied.Key
		}
		return answered, verb, key
	}
	if ok, verb, key := from(allRights(fields, nil, "")); !ok {
		t.Errorf("%s with all rights: it lacks %s %s", method, verb, key)
	}
	for _, f := range fields {
		for _, right := range keyFields[f.FullName()] {
			ok, verb, key := from(allRights(fields, f, right))
			if ok || verb != strings.TrimSuffix(right, "*") || strings.TrimSuffix(key, "*") != keyOf(f) {
				t.Errorf("%s without %s on %s: answered: %v, denied: %s %s", method, right, f.FullName(), ok, verb, key)
			}
		}
	}
}

// TestAPageNamesNoForeignKey walks through the locks of a group as a program that may see a few of
// them, in pages that end at any lock, also when the leader changes. It gets these few, and no
// other key. The work of one question does not grow with the number of the others.
func TestAPageNamesNoForeignKey(t *testing.T) {
	const locks = 60
	mine := func(i int) bool { return i == 7 || i == 8 || i == 33 || i == locks-2 }
	for page := 1; page <= locks+1; page++ {
		m, want := walked(t, locks, mine)
		reads := 0
		lead := func() transport.Services {
			services := leads(nil, nil, new(replica.Question))
			services.List[0] = Query(func(_ context.Context, q replica.Question) (*replica.Answer, error) {
				a := &replica.Answer{}
				reads++
				a.Locks, a.Next, a.More = m.Walk(q.Next, q.Key, 2, 1, page)
				return a, nil
			})
			return services
		}
		services, member := lead(), peer(capability.Member, rights(t, "read mine/*"))
		var got []string
		q := &query.ListRequest{Prefix: []byte("mine/")}
		for pages, more := 0, true; more; pages++ {
			if pages == 2 || pages == 11 {
				services = lead()
			}
			reads = 0
			list, err := Ask(t.Context(), query.NewQueryClient(services.As(member)), query.QueryClient.List, q)
			if err != nil || pages > 3*locks/maxForeignPages || reads > maxForeignPages {
				t.Fatalf("page %d of %d locks: %v, %d reads", pages, page, err, reads)
			}
			for _, l := range list.Locks {
				got = append(got, string(l.Key))
			}
			if text := string(list.Next.GetKey()); strings.Contains(text, "secret") {
				t.Fatalf("a page of %d locks names %q", page, text)
			}
			q.Next, more = list.Next, list.More
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d locks: %q, want %q", page, got, want)
		}
	}
}

// TestASealedKeyIsOpenedByItsMakerOnly seals keys of all lengths. What was changed, or was sealed
// by another process, opens as no key, and never as another one.
func TestASealedKeyIsOpenedByItsMakerOnly(t *testing.T) {
	one, other := newSeal(), newSeal()
	sizes := map[int]bool{}
	for n := range int(lockfsm.DefaultLimits().KeyBytes) + 1 {
		key := strings.Repeat("k", n)
		if got := one.open(key); got != key {
			t.Fatalf("a key of %d bytes that is not sealed opens as %d bytes", n, len(got))
		}
		closed := one.close(key)
		sizes[len(closed)] = true
		if closed == one.close(key) || !isSealed(closed) || one.open(closed) != key || other.open(closed) != "" {
			t.Fatalf("a key of %d bytes opens as %q, and elsewhere as %q", n, one.open(closed), other.open(closed))
		}
		for _, text := range []string{closed[:len(closed)-1], closed + "x", sealMark, sealMark + key} {
			if got := one.open(text); got != "" {
				t.Fatalf("a changed seal opens as %q", got)
			}
		}
	}
	if len(sizes) > int(lockfsm.DefaultLimits().KeyBytes)/sealPad+1 {
		t.Errorf("the lengths of keys are visible: %d sizes", len(sizes))
	}
}

// walked returns a machine with some keys that have data, and those of its keys that are mine.
func walked(t *testing.T, locks int, mine func(int) bool) (m *lockfsm.Machine, want []string) {
	t.Helper()
	m, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1, Rules: lockfsm.RulesVersion,
		SessionTTL: time.Second, Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	commands := []lockfsm.Command{{Kind: lockfsm.Born}}
	for i := range locks {
		key := fmt.Sprint("secret/", i)
		if mine(i) {
			key = fmt.Sprint("mine/", i)
			want = append(want, key)
		}
		commands = append(commands, lockfsm.Command{Kind: lockfsm.Put, Key: key, Value: []byte("x"),
			Nonce: lockfsm.Nonce{byte(i + 1)}})
	}
	var batch []byte
	for i := range commands {
		batch = commands[i].Append(batch)
	}
	m.ApplyEntry(1, 1, batch, func(r *lockfsm.Result) {
		if r.Code != lockfsm.Done {
			t.Fatalf("%+v", r)
		}
	})
	return m, want
}

// TestASealWithAnotherContentOpensAsNoKey seals what close never makes: a length that is missing,
// not ended, or beyond the end. A length that leaves padding or none is that of the key.
func TestASealWithAnotherContentOpensAsNoKey(t *testing.T) {
	s := newSeal()
	for content, want := range map[string]string{"": "", "\x80": "", "\x03ab": "", "\x02ab": "ab", "\x01ab": "a",
		"\x00ab": "", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01ab": ""} {
		if got := s.open(string(s.aead.Seal([]byte(sealMark), nil, []byte(content), nil))); got != want {
			t.Errorf("%q opens as %q, want %q", content, got, want)
		}
	}
}
