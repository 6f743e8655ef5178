//go:build linux

package proctest

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// air is a network that delays and loses packets. Each machine has a TUN device, and this process
// carries the packets between these devices.
type air struct {
	mu      sync.Mutex // guards the fields below
	ports   map[netip.Addr]chan packet
	calm    netip.Addr // packets from and to this machine are neither delayed nor lost
	delay   time.Duration
	loss    float64
	cut     map[netip.Addr]bool // packets from and to these machines are lost
	random  *rand.Rand
	carried int
	lost    int
}

type packet struct {
	at   time.Time
	data []byte
}

// queuePackets is the maximum number of packets that are under way to one machine. Further packets
// are lost.
const queuePackets = 4096

func newAir(seed uint64) *air {
	return &air{ports: map[netip.Addr]chan packet{}, cut: map[netip.Addr]bool{}, random: rand.New(rand.NewPCG(seed, 0))}
}

// weather sets the delay of each packet, and the fraction of packets that are lost.
func (a *air) weather(delay time.Duration, loss float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay, a.loss = delay, loss
}

// silence cuts a machine off, or connects it again if cut is false.
func (a *air) silence(m *machine, cut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut[netip.MustParseAddr(m.ip)] = cut
}

func (a *air) plug(t *testing.T, m *machine) {
	t.Helper()
	var device *os.File
	err := inSpace(m, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		request, err := unix.NewIfreq("eth0")
		if err == nil {
			request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
		}
		if err != nil {
			unix.Close(fd)
			return err
		}
		// With a nonblocking descriptor the Go runtime waits for reads, and Close ends them.
		device = os.NewFile(uintptr(fd), "tun")
		return nil
	})
	if err != nil {
		t.Skipf("*** SKIPPED: a lossy network needs TUN devices: %v ***", err)
	}
	t.Cleanup(func() { device.Close() })
	port := make(chan packet, queuePackets)
	a.mu.Lock()
	a.ports[netip.MustParseAddr(m.ip)] = port
	if !a.calm.IsValid() {
		a.calm = netip.MustParseAddr(m.ip)
	}
	a.mu.Unlock()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	go a.take(device)
	go give(device, port, over)
}

func (a *air) take(device *os.File) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := device.Read(buffer)
		if err != nil {
			return
		}
		a.carry(buffer[:n])
	}
}

func (a *air) carry(data []byte) {
	if len(data) < 20 || data[0]>>4 != 4 || int(binary.BigEndian.Uint16(data[2:])) != len(data) {
		return // not a complete IPv4 packet
	}
	from, to := netip.AddrFrom4([4]byte(data[12:16])), netip.AddrFrom4([4]byte(data[16:20]))
	a.mu.Lock()
	defer a.mu.Unlock()
	port := a.ports[to]
	if port == nil || a.cut[from] || a.cut[to] {
		return
	}
	p := packet{at: time.Now(), data: append([]byte(nil), data...)}
	if from != a.calm && to != a.calm {
		a.carried++
		if a.random.Float64() < a.loss {
			a.lost++
			return
		}
		p.at = p.at.Add(a.delay)
	}
	select {
	case port <- p:
	default:
		a.lost++
	}
}

// give writes each packet to the receiving device when its delay has passed, in order.
func give(device *os.File, port <-chan packet, over <-chan struct{}) {
	for {
		select {
		case p := <-port:
			time.Sleep(time.Until(p.at))
			_, _ = device.Write(p.data) // writing fails only if the device is being removed
		case <-over:
			return
		}
	}
}
