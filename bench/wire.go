package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// The sizes of the messages of a Lock or an Unlock. They are estimates of those of mortise.
const (
	wireAsk    = 80  // an instance asks the leader
	wireAppend = 160 // the leader sends an entry to another voter, or writes it
	wireAck    = 48  // the other voter has it
	wireAnswer = 64  // the leader answers
)

// wirePeer is no lock, but a limit to compare with: what three voters can reach. A call sends the
// messages of a Lock of mortise and writes as often, and does nothing else: an instance asks the
// leader, the leader sends an entry to the two other voters, and answers when a majority has it.
// Each message is read by a goroutine that waits for it and passes it on itself.
func wirePeer(name string, durable, encrypted bool) Peer {
	p := Peer{
		Name: name, Kind: "wire", Durable: durable,
		Promise: "no lock: only the messages and writes that one costs among three voters, over TCP",
		Missing: func() string { return "" },
		Lacks:   map[string]string{},
	}
	if encrypted {
		p.Promise = "as " + map[bool]string{true: "wire-sync", false: "wire"}[durable] + ", over TLS"
	}
	for _, w := range workloads() {
		if w.Name != "serial" {
			p.Lacks[w.Name] = "no lock"
		}
	}
	p.Open = func(_ context.Context, dir string) (Cluster, error) {
		w := &wire{durable: durable, dir: dir, waiting: map[uint64]*wireCall{}}
		err := w.open(encrypted)
		if err != nil {
			_ = w.Close()
			return nil, err
		}
		return w, nil
	}
	return p
}

// wire is the leader, with the connections of all.
type wire struct {
	durable   bool
	dir       string
	security  *tls.Config // nil without TLS
	listener  net.Listener
	instances []Instance
	log       *os.File // of the leader
	all       sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	closers []io.Closer
	voters  []net.Conn // one write at a time
	number  uint64
	waiting map[uint64]*wireCall
}

// wireCall is a call that the leader has not answered yet.
type wireCall struct {
	by   net.Conn
	have int // voters that have the entry
}

func (w *wire) open(encrypted bool) (err error) {
	if encrypted {
		if w.security, err = selfSigned(); err != nil {
			return err
		}
	}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	w.closers = append(w.closers, w.listener)
	if w.durable {
		if w.log, err = w.create("leader"); err != nil {
			return err
		}
	}
	for _, name := range []string{"voter-1", "voter-2"} {
		var log *os.File
		if w.durable {
			if log, err = w.create(name); err != nil {
				return err
			}
		}
		ours, theirs, err := w.pair()
		if err != nil {
			return err
		}
		w.voters = append(w.voters, ours)
		w.all.Go(func() { follow(theirs, log) })
		w.all.Go(func() { w.hear(ours) })
	}
	for range membersOf {
		ours, theirs, err := w.pair()
		if err != nil {
			return err
		}
		w.all.Go(func() { w.serve(ours) })
		w.instances = append(w.instances, &wireInstance{conn: theirs})
	}
	return nil
}

func (w *wire) create(name string) (*os.File, error) {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(w.dir, name))
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, f)
	if _, err := f.Write(make([]byte, wireLogBytes)); err != nil { // mortise, too, writes into blocks that exist
		return nil, err
	}
	return f, f.Sync()
}

const wireLogBytes = 8 << 20

// pair returns both ends of a connection.
func (w *wire) pair() (ours, theirs net.Conn, err error) {
	if theirs, err = net.Dial("tcp", w.listener.Addr().String()); err != nil {
		return nil, nil, err
	}
	w.closers = append(w.closers, theirs)
	if ours, err = w.listener.Accept(); err != nil {
		return nil, nil, err
	}
	w.closers = append(w.closers, ours)
	if w.security == nil {
		return ours, theirs, nil
	}
	server, client := tls.Server(ours, w.security), tls.Client(theirs, w.security)
	err = together(2, func(i int) error { return []*tls.Conn{server, client}[i].Handshake() })
	return server, client, err
}

// serve is the leader's side of an instance.
func (w *wire) serve(conn net.Conn) {
	ask, entry := make([]byte, wireAsk), make([]byte, wireAppend)
	var at int64
	for {
		if _, err := io.ReadFull(conn, ask); err != nil {
			return
		}
		number, err := w.spread(conn, entry)
		if err != nil {
			return
		}
		if w.log != nil && syncAt(w.log, entry, &at) != nil {
			return
		}
		w.has(number)
	}
}

// spread sends an entry to the other voters.
func (w *wire) spread(by net.Conn, entry []byte) (number uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	w.waiting[w.number] = &wireCall{by: by}
	binary.LittleEndian.PutUint64(entry, w.number)
	for _, v := range w.voters {
		if _, err := v.Write(entry); err != nil {
			return 0, err
		}
	}
	return w.number, nil
}

// hear is the leader's side of another voter.
func (w *wire) hear(conn net.Conn) {
	ack := make([]byte, wireAck)
	for {
		if _, err := io.ReadFull(conn, ack); err != nil {
			return
		}
		w.has(binary.LittleEndian.Uint64(ack))
	}
}

// has counts a voter that has the entry, and answers the call once a majority has it.
func (w *wire) has(number uint64) {
	w.mu.Lock()
	call := w.waiting[number]
	if call != nil {
		if call.have++; call.have < membersOf/2+1 {
			call = nil
		} else {
			delete(w.waiting, number)
		}
	}
	w.mu.Unlock()
	if call != nil {
		_, _ = call.by.Write(make([]byte, wireAnswer)) // an error ends the instance's read
	}
}

// follow is another voter.
func follow(conn net.Conn, log *os.File) {
	entry, ack := make([]byte, wireAppend), make([]byte, wireAck)
	var at int64
	for {
		if _, err := io.ReadFull(conn, entry); err != nil {
			return
		}
		if log != nil && syncAt(log, entry, &at) != nil {
			return
		}
		copy(ack, entry)
		if _, err := conn.Write(ack); err != nil {
			return
		}
	}
}

func syncAt(f *os.File, entry []byte, at *int64) error {
	if _, err := f.WriteAt(entry, *at); err != nil {
		return err
	}
	*at = (*at + int64(len(entry))) % (wireLogBytes - wireAppend)
	return syscall.Fdatasync(int(f.Fd()))
}

func (w *wire) Instances() []Instance { return w.instances }
func (w *wire) Version() string       { return "this program" }

func (w *wire) Close() error {
	for _, c := range w.closers {
		_ = c.Close() // the goroutines end with their connections
	}
	w.all.Wait()
	return nil
}

// wireInstance serves one caller.
type wireInstance struct{ conn net.Conn }

func (i *wireInstance) Caller(context.Context, bool) (Locker, error) { return i, nil }

func (i *wireInstance) Lock(context.Context, string) (Hold, error) { return i, i.call() }

func (i *wireInstance) Unlock(context.Context) error { return i.call() }

func (i *wireInstance) call() error {
	if _, err := i.conn.Write(make([]byte, wireAsk)); err != nil {
		return err
	}
	_, err := io.ReadFull(i.conn, make([]byte, wireAnswer))
	return err
}

// selfSigned returns the settings of both ends. They prove nothing: only the cost of the encryption
// is measured.
func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}, nil
}
