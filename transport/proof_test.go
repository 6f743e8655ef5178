package transport

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/formats"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

func kinds() []wire.Hello_Kind { return []wire.Hello_Kind{wire.Hello_LINK, wire.Hello_CALLS} }

// A process dials with the public key of another instance, but without its private key. All its
// hellos are refused. The link of the real instance is not affected, and there is one line in the
// log.
func TestImpostorThatDials(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), forge func(int) *forger) {
		a, b := w.node("a", 1, use), w.node("b", 2, use)
		b.send(a, "x")
		a.wantCommands("link", b, "x")
		asked := 0
		a.ask = func(context.Context, Identity, []byte) ([]byte, error) { asked++; return nil, nil }
		evil := forge(9)
		for i := range 20 {
			for _, kind := range kinds() {
				own := evil.says(func(h *wire.Hello) {
					h.Key, h.Kind, h.Life, h.Number, h.Addr = key(2).Public(), kind, uint64(1+i), 1<<40, "evil:1"
				})
				for _, signature := range [][]byte{nil, make([]byte, 64), {1}} {
					s, binding := evil.dial(w, "a:1")
					g := greeting(evil.key, dialer, binding, own, own)
					if len(signature) != 1 {
						g.Signature = signature
					}
					if answer := s.greets(t, g); answer.Refusal.GetReason() != wire.Refusal_MALFORMED ||
						answer.Hello != nil {
						t.Fatalf("%v: answered with %v", kind, answer)
					}
					if _, err := s.in.ReadByte(); err == nil {
						t.Fatal("its connection is still open")
					}
				}
			}
		}
		synctest.Wait()
		if n := a.Counts(); n.Links != 1 || n.Accepted != 1 || asked != 0 {
			t.Fatalf("%+v, %d questions", n, asked)
		}
		b.send(a, "y")
		a.wantCommands("the link lives", b, "y")
		if n := a.warnings("refused a process that claims the identity", "claims instance "+id(2).String(),
			"is not signed"); n != 1 || a.warnings() != 1 {
			t.Errorf("%d warnings:\n%s", n, a.log)
		}
	})
}

// dialsFail makes a node dial instance 2 at addr for every purpose, and compares the errors.
func dialsFail(t *testing.T, a *node, addr string, want error) {
	t.Helper()
	is := func(why string, err error) {
		t.Helper()
		if !errors.Is(err, want) || errors.Is(err, ErrOther) {
			t.Errorf("%s: %v, want %v", why, err, want)
		}
	}
	to := nodeid.Endpoint{ID: id(2), Addr: addr}
	a.sendTo(to)
	synctest.Wait()
	for _, e := range a.seen() {
		if e.down == nil {
			t.Fatalf("a frame: %+v", e)
		}
		is("a link", e.down)
	}
	a.anew()
	for _, instance := range []nodeid.ID{{}, id(2), id(3)} {
		a.anew()
		answer, from, err := a.Ask(t.Context(), addr, instance, []byte("who"))
		is(fmt.Sprint("a question for ", instance), err)
		if answer != nil || from != (Identity{}) {
			t.Errorf("answered %q by %+v", answer, from)
		}
	}
	a.anew()
	is("a snapshot", a.SendSnapshot(t.Context(), to, snapshotMessage(a, a, 10)))
	if c := a.Counts(); c.Links+c.Dialing+c.Shared != 0 {
		t.Errorf("left behind: %+v", c)
	}
	time.Sleep(2 * maxPause)
}

func TestImpostorThatListens(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), forge func(int) *forger) {
		a, evil := w.node("a", 1, use), forge(9)
		for why, answer := range map[string]func(heard) *wire.Greeting{
			"its own signature": func(to heard) *wire.Greeting {
				return greeting(evil.key, acceptor, to.binding, to.Hello,
					evil.says(func(h *wire.Hello) { h.Key = key(2).Public() }))
			},
			"no signature": func(heard) *wire.Greeting {
				return &wire.Greeting{Hello: evil.says(func(h *wire.Hello) { h.Key = key(2).Public() })}
			},
			"the hello that it heard": func(to heard) *wire.Greeting { return to.Greeting },
			"that hello, signed by itself": func(to heard) *wire.Greeting {
				return greeting(evil.key, acceptor, to.binding, to.Hello, to.Hello)
			},
			"another instance, without proof": func(heard) *wire.Greeting {
				return &wire.Greeting{Hello: evil.says(func(*wire.Hello) {})}
			},
			"nothing": func(heard) *wire.Greeting { return &wire.Greeting{} },
		} {
			a.log.text.Reset()
			time.Sleep(noticeEvery)
			evil.listen(w, fmt.Sprintf("b:%d", len(why)), answer)
			dialsFail(t, a, fmt.Sprintf("b:%d", len(why)), ErrForeign)
			if n := a.warnings("has not proved", "addr=b:"); n != 1 {
				t.Errorf("%s: %d warnings:\n%s", why, n, a.log)
			}
		}
	})
}

// A refusal must never cause ErrOther, which can end the membership of a voter.
func TestOtherInstanceOnlyOnProof(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), forge func(int) *forger) {
		a, evil := w.node("a", 1, use), forge(9)
		for reason := range wire.Refusal_Reason(12) {
			addr := fmt.Sprintf("b:%d", reason+1)
			evil.listen(w, addr, func(heard) *wire.Greeting {
				return &wire.Greeting{Refusal: &wire.Refusal{Reason: reason, Text: "this is instance " +
					id(9).String()}}
			})
			dialsFail(t, a, addr, kindOf(reason))
		}
		w.node("c", 9, use)
		a.sendTo(nodeid.Endpoint{ID: id(2), Addr: "c:1"})
		synctest.Wait()
		for _, e := range a.seen() {
			if other, ok := errors.AsType[*OtherError](e.down); !ok || other.Answered != id(9) || other.Asked != id(2) {
				t.Errorf("a link: %+v", e)
			}
		}
		if _, from, err := a.Ask(t.Context(), "c:1", id(2), nil); !errors.Is(err, ErrOther) || from.Instance != id(9) {
			t.Errorf("a question: %v, %v", from, err)
		}
		a.anew()
		if err := a.SendSnapshot(t.Context(), nodeid.Endpoint{ID: id(2), Addr: "c:1"},
			snapshotMessage(a, a, 10)); !errors.Is(err, ErrOther) {
			t.Errorf("a snapshot: %v", err)
		}
	})
}

func TestReplayedHello(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), forge func(int) *forger) {
		a, b, evil := w.node("a", 1, use), w.node("b", 2, use), forge(9)
		var recorded *wire.Greeting
		evil.listen(w, "c:1", func(to heard) *wire.Greeting {
			recorded = proto.CloneOf(to.Greeting)
			return &wire.Greeting{Refusal: &wire.Refusal{}}
		})
		a.sendTo(nodeid.Endpoint{ID: id(2), Addr: "c:1"})
		synctest.Wait()
		a.seen()
		if recorded == nil {
			t.Fatal("nothing was recorded")
		}
		for _, addr := range []string{"b:1", "a:1"} {
			s, _ := evil.dial(w, addr)
			if answer := s.greets(t, recorded); answer.Refusal.GetReason() != wire.Refusal_MALFORMED {
				t.Errorf("%s answers with %v", addr, answer)
			}
		}
		s, binding := evil.dial(w, "b:1") // the attacker uses its own identity
		own := evil.says(func(*wire.Hello) {})
		answer := s.greets(t, greeting(evil.key, dialer, binding, own, own))
		if answer.Hello == nil {
			t.Fatalf("b answers with %v", answer)
		}
		evil.listen(w, "d:1", func(heard) *wire.Greeting { return answer })
		dialsFail(t, a, "d:1", ErrForeign)
		s.kill()
		synctest.Wait()
		if n := len(a.seen()); n != 0 || b.Linked(id(1)) {
			t.Errorf("%d events", n)
		}
	})
}

// The attacker has the certificate that all instances share, terminates TLS on both sides and
// relays hellos.
func TestManInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		shared := Config{}
		newAuthority(t).use(&shared)
		use := func(c *Config) { c.TLS = shared.TLS }
		a, b, evil := w.node("a", 1, use), w.node("b", 2, use), forge(9)
		evil.config.TLS = shared.TLS
		var answers []*wire.Greeting
		evil.listen(w, "c:1", func(to heard) *wire.Greeting {
			s, _ := evil.dial(w, "b:1")
			defer s.kill()
			answer := s.greets(t, to.Greeting)
			answers = append(answers, answer)
			return answer
		})
		to := nodeid.Endpoint{ID: id(2), Addr: "c:1"}
		a.sendTo(to)
		synctest.Wait()
		_, _, askErr := a.Ask(t.Context(), to.Addr, to.ID, []byte("who"))
		if events := a.seen(); len(events) != 1 || events[0].down == nil || errors.Is(events[0].down, ErrOther) ||
			askErr == nil || errors.Is(askErr, ErrOther) {
			t.Errorf("events %+v, question: %v", events, askErr)
		}
		if len(answers) != 2 || len(b.seen()) != 0 || b.Linked(id(1)) {
			t.Errorf("%d connections were relayed; b has %+v", len(answers), b.Counts())
		}
		for _, answer := range answers {
			if answer.Refusal.GetReason() != wire.Refusal_MALFORMED {
				t.Errorf("b answers with %v", answer)
			}
		}
	})
}

// Without TLS, an attacker can relay the random numbers, so that both sides have the same binding.
// But the dialer does not accept an answer to the attacker's own hello.
func TestAnswerForAnotherDialer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, evil := w.node("a", 1), w.node("b", 2), forge(9)
		answered := 0
		w.serve("c:1", func(conn net.Conn) {
			defer conn.Close()
			raw, err := w.net.Dialer("evil")(context.Background(), "b:1")
			if err != nil {
				t.Error(err)
				return
			}
			defer raw.Close()
			near, far := newStream(&evil.base, conn, nil, func() {}), newStream(&evil.base, raw, nil, func() {})
			var nonces [2][len(linkPreface) + bindingBytes]byte
			_, err1 := io.ReadFull(near.in, nonces[0][:])
			_, err2 := raw.Write(nonces[0][:])
			_, err3 := io.ReadFull(far.in, nonces[1][:])
			_, err4 := conn.Write(nonces[1][:])
			near.begun, near.opens, far.begun, far.opens = true, true, true, true
			sum := sha256.New()
			sum.Write([]byte(formats.PlainContext))
			sum.Write(nonces[0][len(linkPreface):])
			sum.Write(nonces[1][len(linkPreface):])
			own := evil.says(func(h *wire.Hello) { h.Number = uint64(answered) + 1 })
			err5 := far.greet(greeting(evil.key, dialer, sum.Sum(nil), own, own))
			answer, err6 := far.hearGreeting()
			_, err7 := near.hearGreeting()
			if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
				t.Error(err)
				return
			}
			if answer.Hello != nil {
				answered++
			}
			_ = near.greet(answer)
			drain(conn)
		})
		dialsFail(t, a, "c:1", ErrForeign)
		if answered != 5 || b.Linked(id(1)) {
			t.Errorf("the test is wrong: b has answered %d times", answered)
		}
	})
}
