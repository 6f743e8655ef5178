package mortisecollector

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-lock/mortise"
)

const hidden = "[REDACTED]"

// Secret is a text that no printed configuration contains.
type Secret string

// String returns a fixed text.
func (Secret) String() string { return hidden }

// GoString returns a fixed text.
func (Secret) GoString() string { return hidden }

// MarshalText returns a fixed text.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Config is the configuration of an extension of NewFactory. All collectors of an election have the
// same Key. The other fields are those of mortise.Config, whose documentation has their rules. An
// empty field has the default of mortise.Config.
type Config struct {
	// Key is the key of the lock. Empty means "collector/" and the ID of the extension, for example
	// "collector/mortise".
	Key string `mapstructure:"key"`

	Name      string   `mapstructure:"name"`      // the name that other collectors see; empty means the host name
	Cluster   string   `mapstructure:"cluster"`   // the label of the group
	Bind      string   `mapstructure:"bind"`      // the address of this collector, host:port
	Advertise string   `mapstructure:"advertise"` // the address by which the others reach it
	Join      []string `mapstructure:"join"`      // addresses of all collectors; empty means a group of one
	Replicas  int      `mapstructure:"replicas"`  // the number of all collectors, 1 to 16; or use Founders
	Founders  []string `mapstructure:"founders"`  // the names of the collectors that found the group
	Zone      string   `mapstructure:"zone"`      // the failure domain of this collector
	Secret    Secret   `mapstructure:"secret"`    // the secret of the group
	Insecure  bool     `mapstructure:"insecure"`  // allows other addresses than loopback without a secret

	// SessionTTL is how long the lock stays taken when its collector was killed. 1 s to 10 min. Zero
	// means 10 s.
	SessionTTL time.Duration `mapstructure:"session_ttl"`
}

// Validate returns an error if Join lacks one of Replicas and Founders, or has both. The other
// rules are checked when the extension starts.
func (c *Config) Validate() error {
	if len(c.Join) > 0 && (c.Replicas == 0) == (len(c.Founders) == 0) {
		return fmt.Errorf("mortisecollector: join needs exactly one of replicas and founders: set replicas to the " +
			"number of all collectors, or founders to the names of the first three")
	}
	return nil
}

func (c *Config) node(log *slog.Logger) mortise.Config {
	return mortise.Config{
		Name: c.Name, Cluster: c.Cluster, Bind: c.Bind, Advertise: c.Advertise, Join: c.Join, Replicas: c.Replicas,
		Founders: c.Founders, Zone: c.Zone, Secret: string(c.Secret), Insecure: c.Insecure, SessionTTL: c.SessionTTL,
		Logger: log,
	}
}

// SharedConfig is the configuration of an extension of NewFactoryFor.
type SharedConfig struct {
	// Key is Config.Key.
	Key string `mapstructure:"key"`
}
