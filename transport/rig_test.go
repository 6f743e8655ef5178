package transport

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/memnet"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

var ascending = sync.OnceValue(func() []nodeid.Key { return nodeidtest.Ascending(128) })

// key returns the key of instance n, from 1 to 128. A larger n has a larger ID.
func key(n int) nodeid.Key { return ascending()[n-1] }

func id(n int) nodeid.ID { return key(n).ID() }

// node is a port with a handler that records events. The address of the port is "<name>:1".
type node struct {
	*Port
	t        *testing.T
	self     Self     // to change the port's identity, modify self and call identify
	identity Identity // its identity for its peers
	log      *logs

	mu        sync.Mutex
	events    []event
	ask       func(ctx context.Context, from Identity, question []byte) ([]byte, error)
	snapshot  func(from Identity, m *raftpb.Message) error
	may       func(from Identity, m *raftpb.Message) error
	onFrame   func(from Identity, f Frame)
	onDown    func()
	snapshots []*raftpb.Message
}

type handler node

type event struct {
	from  Identity
	frame Frame
	down  error
}

func (n *handler) Frame(from Identity, f Frame) {
	n.mu.Lock()
	n.events = append(n.events, event{from: from, frame: f})
	hook := n.onFrame
	n.mu.Unlock()
	if hook != nil {
		hook(from, f)
	}
}

func (n *handler) Down(peer Identity, err error) {
	if err == nil {
		n.t.Error("a Down without a reason")
	}
	n.mu.Lock()
	hook := n.onDown
	n.mu.Unlock()
	if hook != nil {
		hook()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, event{from: peer, down: err})
}

// echoMethod is the only method of every node's service. It returns the bytes of the question.
const echoMethod = "/test.Echo/Ask"

func (n *handler) echo() Services {
	desc := &grpc.ServiceDesc{ServiceName: "test.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Ask",
		Handler: func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any,
			error) {
			var question wrapperspb.BytesValue
			if err := decode(&question); err != nil {
				return nil, err
			}
			return intercept(ctx, &question, &grpc.UnaryServerInfo{FullMethod: echoMethod},
				func(ctx context.Context, _ any) (any, error) {
					answer, err := n.answer(ctx, AskerOf(ctx), question.Value)
					return wrapperspb.Bytes(answer), err
				})
		},
	}}}
	all := func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, method grpc.UnaryHandler) (any, error) {
		return method(ctx, q)
	}
	return Services{List: []Service{{Desc: desc, Impl: n}}, Intercept: all}
}

func (n *handler) answer(ctx context.Context, from Identity, question []byte) ([]byte, error) {
	n.mu.Lock()
	ask := n.ask
	n.mu.Unlock()
	if ask != nil {
		return ask(ctx, from, question)
	}
	return append([]byte("re: "), question...), nil
}

func (n *node) Ask(ctx context.Context, addr string, to nodeid.ID, question []byte) ([]byte, Identity, error) {
	var answer wrapperspb.BytesValue
	r := n.To(addr, to)
	err := r.Invoke(ctx, echoMethod, wrapperspb.Bytes(question), &answer)
	return answer.Value, r.Answered, err
}

func (d *dialed) Ask(ctx context.Context) (grpc.BidiStreamingClient[wire.Question, wire.Answer], error) {
	return d.question(ctx, echoMethod)
}

func body(b []byte) []byte {
	encoded, _ := proto.Marshal(wrapperspb.Bytes(b))
	return encoded
}

func (n *handler) MaySendSnapshot(from Identity, m *raftpb.Message) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.may != nil {
		return n.may(from, m)
	}
	return nil
}

func (n *handler) Snapshot(from Identity, m *raftpb.Message) error {
	n.mu.Lock()
	n.snapshots = append(n.snapshots, m)
	hook := n.snapshot
	n.mu.Unlock()
	if hook != nil {
		return hook(from, m)
	}
	return nil
}

// seen returns and removes the recorded events.
func (n *node) seen() []event {
	n.mu.Lock()
	defer n.mu.Unlock()
	events := n.events
	n.events = nil
	return events
}

func (n *node) peer() nodeid.Endpoint {
	return nodeid.Endpoint{ID: n.identity.Instance, Addr: n.identity.Addr}
}

// commands concatenates the commands of all frames from one instance, and counts its Downs.
func commands(events []event, from nodeid.ID) (text string, downs int) {
	for _, e := range events {
		if e.from.Instance != from {
			continue
		}
		if e.down != nil {
			downs++
		}
		text += string(e.frame.Commands)
	}
	return text, downs
}

type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type world struct {
	t   *testing.T
	net *memnet.Network
}

func newWorld(t *testing.T) *world { return &world{t: t, net: memnet.New()} }

func (w *world) node(name string, n int, change ...func(*Config)) *node {
	w.t.Helper()
	ln, err := w.net.Listen(name + ":1")
	if err != nil {
		w.t.Fatal(err)
	}
	return startNode(w.t, ln, w.net.Dialer(name), instance(n, name+":1"), change...)
}

func instance(n int, addr string) Self {
	return Self{Key: key(n), Group: 7, Raft: uint64(n) + 100, Addr: addr}
}

func startNode(t *testing.T, ln net.Listener, dial func(context.Context, string) (net.Conn, error), self Self,
	change ...func(*Config)) *node {
	t.Helper()
	n := &node{t: t, log: &logs{}}
	c := Config{Cluster: "test", Self: self, Listener: ln, Dial: dial, Handler: (*handler)(n),
		Services: (*handler)(n).echo(), Logger: slog.New(slog.NewTextHandler(n.log, nil))}
	for _, f := range change {
		f(&c)
	}
	n.self, n.identity = c.Self, c.Self.seen(max(c.Life, 1))
	port, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	n.Port = port
	t.Cleanup(func() { port.Close() })
	return n
}

func (s *Self) seen(life uint64) Identity {
	return Identity{Instance: s.Instance(), Group: s.Group, Raft: s.Raft, Addr: s.Addr, Life: life,
		Peer: capability.Peer{Tier: capability.Root}}
}

func (n *node) identify() {
	n.identity = n.self.seen(n.identity.Life)
	n.Identify(n.self)
}

// The method anew makes the node forget all failed dials.
func (n *node) anew() { n.dials.forget(false) }

// longest makes every pause of the node as long as possible.
func longest(c *Config) {
	c.Random = func(b []byte) {
		if len(b) == 8 {
			binary.LittleEndian.PutUint64(b, 1<<20*uint64(maxPause)-1)
			return
		}
		_, _ = rand.Read(b)
	}
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t)) })
}

func (n *node) send(to *node, text string) {
	n.t.Helper()
	if err := n.Send(to.peer(), Frame{Commands: []byte(text)}); err != nil {
		n.t.Fatalf("Send %q: %v", text, err)
	}
}

// wantCommands waits until all goroutines are blocked, and compares the commands from one node.
func (n *node) wantCommands(why string, from *node, want string) {
	n.t.Helper()
	synctest.Wait()
	text, downs := commands(n.seen(), from.identity.Instance)
	if text != want || downs != 0 {
		n.t.Fatalf("%s: got %q and %d downs, want %q and none", why, text, downs, want)
	}
}

// raw opens a connection to a node, and proves no identity on it.
func (w *world) raw(addr string) net.Conn {
	w.t.Helper()
	conn, err := w.net.Dialer("stranger")(context.Background(), addr)
	if err != nil {
		w.t.Fatal(err)
	}
	return conn
}

func dialsWith(change func(net.Conn) net.Conn) func(*Config) {
	return func(c *Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := dial(ctx, addr)
			if err != nil {
				return nil, err
			}
			return change(conn), nil
		}
	}
}

// begin opens a connection for a link and sends nothing.
func (n *node) begin(addr string) *stream {
	n.t.Helper()
	raw, err := n.open(context.Background(), addr)
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := n.secure(context.Background(), raw, addr)
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// link opens a connection for a link and exchanges hellos. The hello of n has the given number.
func (n *node) link(addr string, to nodeid.ID, number uint64) (*stream, *introduction) {
	n.t.Helper()
	s := n.begin(addr)
	who, err := n.introduce(context.Background(), s, addr, &n.self, wire.Hello_LINK, to, number)
	if err != nil {
		n.t.Fatal(err)
	}
	return s, who
}

func drain(conn net.Conn) string {
	b, _ := io.ReadAll(conn)
	return string(b)
}

func raftMessage(from, to *node, index uint64) *raftpb.Message {
	return &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: &from.identity.Raft, To: &to.identity.Raft,
		Index: &index, Entries: []*raftpb.Entry{{Data: []byte(fmt.Sprint("entry ", index))}}}
}

func eventually(t *testing.T, why string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(why)
		}
	}
}

type lockedSource struct {
	mu  sync.Mutex
	src interface{ Uint64() uint64 }
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src.Uint64()
}
