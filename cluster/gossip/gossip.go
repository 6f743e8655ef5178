package gossip

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// The limits of the texts of Meta.
const (
	MaxNameBytes = 128 // maximum length of Meta.Name
	MaxZoneBytes = 128 // maximum length of Meta.Zone
	MaxAddrBytes = 200 // maximum length of Meta.Addr
)

// Meta is the data about an instance that gossip spreads.
type Meta struct {
	Instance nodeid.ID
	Group    uint64 // zero means none
	At       uint64 // index of the instance's newest configuration of Group
	Leader   bool   // the instance knows a leader of Group
	Name     string // at most MaxNameBytes
	Zone     string // at most MaxZoneBytes
	Addr     string // host:port of the instance, at most MaxAddrBytes
}

// News is the latest state of a member: its Meta, and whether it is present or has left.
type News struct {
	Name string // of the member in gossip; different at every start of an instance
	Meta Meta
	Here bool
}

// Net carries gossip between instances. All methods are safe for concurrent use. An address is
// host:port.
type Net interface {
	// WriteTo sends one packet or drops it. It must not block, and must keep no reference to b.
	WriteTo(b []byte, addr string) error
	// ReadPacket waits for the next packet. data belongs to the caller. An error means that there
	// are no more packets, because ctx has ended or the network is closed.
	ReadPacket(ctx context.Context) (data []byte, from string, at time.Time, err error)
	// DialStream opens a stream. Its reads and writes must obey deadlines, and must return when the
	// stream is closed.
	DialStream(ctx context.Context, addr string) (net.Conn, error)
	// AcceptStream waits for the next incoming stream. An error means that there are no more
	// streams.
	AcceptStream(ctx context.Context) (net.Conn, error)
}

// Config configures Gossip. All fields must be set.
type Config struct {
	Net       Net
	Label     string       // 1 to 255 bytes; packets with another label are dropped
	Advertise string       // host:port at which the others reach this instance
	Random    func([]byte) // fills with unpredictable bytes
	Logger    *slog.Logger
	// News is called when Take has something to return, but not earlier than 50 ms after the last
	// Take. It is called under a lock of memberlist, so it must neither block nor call Gossip. It
	// may be called before Start returns and after Close.
	News func()
}

// Gossip is running gossip. Join, Take and Leave are safe for concurrent use. Tell may run
// concurrently with them, but not with another Tell.
type Gossip interface {
	// Tell replaces the data about this instance that gossip spreads.
	Tell(m Meta)
	// Take returns the latest news of each member since the last call, in the order of each
	// member's first news. For a member that has left and come back since that call, it returns two
	// entries, and the first reports that the member left. The slice belongs to the caller.
	Take() []News
	// Join exchanges all data with the instance at addr. It blocks for a few seconds at most, and
	// returns when Close is called.
	Join(addr string) error
	// Leave announces that this instance leaves, and waits until the announcement was sent, but not
	// longer than the given time. It must be called only once. After Close it does nothing.
	Leave(within time.Duration)
	// Close ends gossip. It waits for a Leave that is under way. It must be called only once.
	Close()
}
