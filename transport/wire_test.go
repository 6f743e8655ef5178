package transport

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// A program that also links another .proto file with the same path panics at start.
func TestProtoFileIsOursAlone(t *testing.T) {
	file := wire.File_mortise_transport_v1_peer_proto
	if file.Path() != "mortise/transport/v1/peer.proto" || file.Package() != "mortise.transport.v1" {
		t.Errorf("path %s, package %s", file.Path(), file.Package())
	}
	n := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("mortise.transport.v1",
		func(protoreflect.FileDescriptor) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d files in the package", n)
	}
}

func TestGeneratedCodeIsFresh(t *testing.T) {
	text, err := os.ReadFile("wire/mortise/transport/v1/peer.proto")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	scope := ""
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), ";"))
		switch {
		case len(words) == 3 && words[0] == "message" && words[2] == "{":
			scope = words[1]
		case len(words) >= 4 && words[len(words)-2] == "=" && words[0] != "option":
			declared[scope+"."+strings.Join(words, " ")] = true
		}
	}
	generated := map[string]bool{}
	messages := wire.File_mortise_transport_v1_peer_proto.Messages()
	for i := range messages.Len() {
		m := messages.Get(i)
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			kind := f.Kind().String()
			switch {
			case f.Message() != nil:
				kind = string(f.Message().Name())
			case f.Enum() != nil:
				kind = string(f.Enum().Name())
			}
			if f.IsList() {
				kind = "repeated " + kind
			}
			generated[string(m.Name())+"."+kind+" "+string(f.Name())+" = "+strconv.Itoa(int(f.Number()))] = true
		}
	}
	for line := range declared {
		if !generated[line] {
			t.Errorf("%s is declared, but not in the generated code: run sh transport/wire/generate.sh", line)
		}
	}
	for line := range generated {
		if !declared[line] {
			t.Errorf("%s is generated, but not declared: run sh transport/wire/generate.sh", line)
		}
	}
}

// FuzzFrames checks that arbitrary frames cause no panic, and that data from another group and raft
// messages from another sender are not delivered.
func FuzzFrames(f *testing.F) {
	seed := func(frames ...*wire.Frame) {
		var all []byte
		for _, frame := range frames {
			b, err := proto.Marshal(frame)
			if err != nil {
				f.Fatal(err)
			}
			all = append(append(all, byte(len(b))), b...)
		}
		f.Add(all)
	}
	seed(&wire.Frame{Commands: []byte("c"), Renewals: []byte("r"), Replies: []byte("p")}, &wire.Frame{Retired: true})
	seed(&wire.Frame{Standing: &wire.Standing{Group: 7, Raft: 102}},
		&wire.Frame{Raft: [][]byte{{0x18, 102, 0x10, 101}}})
	seed(&wire.Frame{Standing: &wire.Standing{Group: 9, Addr: "c:1"}}, &wire.Frame{Commands: []byte("c")})
	seed(&wire.Frame{Refusal: &wire.Refusal{Reason: 99, Text: "x"}}, &wire.Frame{Raft: [][]byte{{0xff}}})
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			a := newWorld(t).node("a", 1)
			l := &link{port: &a.base, instance: id(2), self: id(1), queue: newQueue(&a.config),
				peer: Identity{Instance: id(2), Group: 7, Raft: 102}}
			frame := &received{}
			for len(b) > 0 {
				n := min(int(b[0]), len(b)-1)
				if frame.decode(b[1:1+n]) == nil {
					l.deliver(frame)
				}
				b = b[1+n:]
			}
			for _, e := range a.seen() {
				if e.down != nil || e.from.Group != 7 || e.from.Instance != id(2) {
					t.Fatalf("got %+v", e)
				}
				for _, m := range e.frame.Raft {
					if m.GetFrom() != e.from.Raft || m.GetTo() != 101 {
						t.Fatalf("raft message %v", m)
					}
				}
			}
		})
	})
}

// FuzzFirstBytes checks that arbitrary first bytes cause no panic. The error must become ErrForeign
// at the first wrong byte, and not before. If the first byte is one of TLS, it must be ErrSecured.
func FuzzFirstBytes(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400"))
	f.Add([]byte{tlsHandshake, '0'})
	f.Add([]byte{tlsAlert, 3, 1, 0})
	f.Add([]byte{0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 64, 0})
	f.Add(speech(f, func(s *stream) error { return s.greet(aGreeting) }))
	f.Fuzz(func(t *testing.T, b []byte) {
		for i := range b {
			_, err := hears(bytes.NewReader(b[:i]), 0).hearGreeting()
			n := min(i, len(linkPreface))
			ours := string(b[:n]) == linkPreface[:n]
			secured := n > 0 && (b[0] == tlsHandshake || b[0] == tlsAlert)
			if errors.Is(err, ErrSecured) != secured || errors.Is(err, ErrForeign) != (!ours && !secured) {
				t.Fatalf("%q: %v", b[:i], err)
			}
		}
	})
}
