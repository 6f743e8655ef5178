package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// compose has a field for each key that compose.yaml may contain. All of these keys are in the
// Compose Specification. Any other key is a fault.
type compose struct {
	Template service `json:"x-orders"`
	Secrets  map[string]struct {
		File string `json:"file"`
	} `json:"secrets"`
	Services map[string]service  `json:"services"`
	Volumes  map[string]struct{} `json:"volumes"`
}

type service struct {
	Image string `json:"image"`
	Build struct {
		Context    string `json:"context"`
		Dockerfile string `json:"dockerfile_inline"`
	} `json:"build"`
	Environment map[string]string `json:"environment"`
	Secrets     []string          `json:"secrets"`
	ReadOnly    bool              `json:"read_only"`
	Drop        []string          `json:"cap_drop"`
	Options     []string          `json:"security_opt"`
	Hostname    string            `json:"hostname"`
	Ports       []string          `json:"ports"`
	Restart     string            `json:"restart"`
	Grace       string            `json:"stop_grace_period"`
	Volumes     []string          `json:"volumes"`
}

// Compose returns the faults of a compose file.
func Compose(file string, p Program) []error {
	var f faults
	var c compose
	if err := yaml.UnmarshalStrict([]byte(file), &c); err != nil {
		return []error{err}
	}
	var names, addresses []string
	for name := range c.Services {
		names = append(names, name)
	}
	slices.Sort(names)
	mounted := map[string]bool{}
	for _, name := range names {
		s := c.Services[name]
		addresses = append(addresses, fmt.Sprintf("%s:%d", name, p.LockPort))
		f.must(s.Hostname == name, "%s: the hostname is %q, which is not one of the founders", name, s.Hostname)
		f.one(name, s, p)
		f.must(len(s.Secrets) == 1 && c.Secrets[s.Secrets[0]].File != "" &&
			s.Environment[prefix+"SECRET_FILE"] == "/run/secrets/"+s.Secrets[0],
			"%s: the secret does not come from a file that the service gets as a secret", name)
		for _, v := range s.Volumes {
			volume, path, _ := strings.Cut(v, ":")
			_, declared := c.Volumes[volume]
			f.must(declared, "%s: the volume %s is not declared", name, volume)
			f.must(!mounted[volume], "%s: the volume %s belongs to another service", name, volume)
			mounted[volume] = strings.HasPrefix(s.Environment[prefix+"DIR"], path+"/")
			f.must(mounted[volume], "%s: the directory is not on the volume", name)
		}
		f.must(len(s.Volumes) == 1, "%s: want one volume", name)
	}
	f.must(len(names) == 3, "%d services, want three", len(names))
	for _, name := range names {
		f.must(slices.Equal(split(c.Services[name].Environment[prefix+"FOUNDERS"]), names),
			"%s: the founders are not %v", name, names)
		f.must(slices.Equal(split(c.Services[name].Environment[prefix+"JOIN"]), addresses),
			"%s: the addresses to join are not %v", name, addresses)
	}
	return f
}

func (f *faults) one(name string, s service, p Program) {
	for variable := range s.Environment {
		f.must(p.Variables[variable], "%s: the program does not read the variable %s", name, variable)
	}
	f.must(s.Environment[prefix+"SECRET"] == "", "%s: the secret is in a variable, which docker inspect shows", name)
	f.must(s.ReadOnly && slices.Equal(s.Drop, []string{"ALL"}) &&
		slices.Equal(s.Options, []string{"no-new-privileges:true"}),
		"%s: the container can write its root, or has or can get privileges", name)
	grace, err := time.ParseDuration(s.Grace)
	f.must(err == nil && grace > p.End, "%s: stop_grace_period %q is not longer than %v", name, s.Grace, p.End)
	f.must(slices.Equal(s.Ports, []string{strconv.Itoa(p.HTTPPort)}), "%s: ports %v, want only that of the probes", name,
		s.Ports)
	f.must(s.Restart == "unless-stopped", "%s: a crashed service is not restarted", name)
	f.must(s.Build.Context == ".." && strings.Contains(s.Build.Dockerfile, " ./examples/service "),
		"%s: the built program is not the example", name)
}

// unitKeys are the keys of systemd.unit(5), systemd.service(5), systemd.exec(5) and systemd.kill(5)
// that the unit uses.
var unitKeys = [...]string{
	"Unit Description", "Unit Wants", "Unit After", "Unit StartLimitIntervalSec",
	"Service Type", "Service ExecStart", "Service EnvironmentFile", "Service LoadCredential", "Service Environment",
	"Service DynamicUser", "Service StateDirectory",
	"Service StateDirectoryMode", "Service Restart", "Service RestartSec", "Service KillSignal",
	"Service TimeoutStopSec", "Service OOMScoreAdjust",
	"Service NoNewPrivileges", "Service PrivateDevices", "Service CapabilityBoundingSet", "Install WantedBy",
}

// Unit returns the faults of a systemd unit.
func Unit(file string, p Program) []error {
	var f faults
	section, values := "", map[string]string{}
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		key, value, assigned := strings.Cut(line, "=")
		switch name := section + " " + key; {
		case line == "":
		case strings.HasPrefix(line, "#"):
			if variable, _, ok := strings.Cut(strings.TrimLeft(line, "# "), "="); ok &&
				strings.HasPrefix(variable, prefix) {
				f.must(p.Variables[variable], "the program does not read the variable %s", variable)
			}
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
		case !assigned || !slices.Contains(unitKeys[:], name):
			f.must(false, "the unit may not have the line %q in its section %q", line, section)
		default:
			_, twice := values[name]
			f.must(!twice, "%s is set twice", name)
			values[name] = value
		}
	}
	stop, err := strconv.Atoi(values["Service TimeoutStopSec"])
	f.must(err == nil && time.Duration(stop)*time.Second > p.End,
		"TimeoutStopSec is %q, not longer than the %v that the program may take to end",
		values["Service TimeoutStopSec"], p.End)
	f.must(values["Service KillSignal"] == "SIGTERM", "the program leaves on SIGTERM")
	f.must(values["Service Restart"] == "always" && values["Unit StartLimitIntervalSec"] == "0",
		"a crashed service is not restarted every time")
	own := map[string]string{}
	for _, assignment := range strings.Fields(values["Service Environment"]) {
		variable, value, _ := strings.Cut(assignment, "=")
		f.must(p.Variables[variable], "the program does not read the variable %s", variable)
		own[variable] = value
	}
	f.must(strings.HasPrefix(values["Service EnvironmentFile"], "/"),
		"the addresses do not come from a file, so the unit would differ between machines")
	id, path, _ := strings.Cut(values["Service LoadCredential"], ":")
	f.must(strings.HasPrefix(path, "/") && own[prefix+"SECRET_FILE"] == "%d/"+id,
		"the secret does not come from a file that only the service can read")
	f.must(own[prefix+"SECRET"] == "" && !strings.Contains(file, prefix+"SECRET="),
		"the secret is in a variable, which every user of the machine can read")
	dir := own[prefix+"DIR"]
	f.must(strings.HasPrefix(dir, "%S/"+values["Service StateDirectory"]+"/") &&
		values["Service StateDirectory"] != "", "the directory is not in the unit's StateDirectory: it would not be writable")
	f.must(strings.HasPrefix(values["Service ExecStart"], "/"), "ExecStart names no program")
	f.must(values["Unit After"] == "network-online.target" && values["Unit Wants"] == "network-online.target",
		"it starts before there is a route, which it needs to find its address")
	f.must(values["Install WantedBy"] != "", "nothing starts it")
	return f
}
