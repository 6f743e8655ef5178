package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pod checks the rules that are the same for both workloads. It returns the container and the
// values of its variables.
func (f *faults) pod(spec corev1.PodSpec, p Program) (variables map[string]string, container corev1.Container) {
	grace := time.Duration(0)
	if spec.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
	}
	f.must(grace > p.End, "the grace period of %v is not longer than the %v that the program may take to end: "+
		"it would be killed while it holds locks", grace, p.End)
	f.must(spec.EnableServiceLinks != nil && !*spec.EnableServiceLinks,
		"enableServiceLinks is not false: a Service with the name of the program's prefix would add variables")
	f.must(len(spec.Containers) == 1, "there are %d containers, want one", len(spec.Containers))
	if len(spec.Containers) == 0 {
		return nil, container
	}
	container = spec.Containers[0]
	f.restricted(spec, container)
	f.probe("startup", container.StartupProbe, p, "/healthz")
	f.probe("readiness", container.ReadinessProbe, p, "/readyz")
	f.probe("liveness", container.LivenessProbe, p, "/healthz")
	if s := container.StartupProbe; s != nil {
		f.must(s.PeriodSeconds*s.FailureThreshold >= 30,
			"the startup probe gives up within 30 s: reading a directory may be slower")
	}
	if r := container.ReadinessProbe; r != nil {
		f.must(time.Duration(r.TimeoutSeconds)*time.Second > p.Ready,
			"the readiness probe does not wait for the program's answer, which takes up to %v", p.Ready)
	}
	_, limited := container.Resources.Limits[corev1.ResourceCPU]
	f.must(!limited, "there is a CPU limit: a throttled process renews its lease late")
	variables = f.variables(container, p)
	f.secret(spec, container, variables[prefix+"SECRET_FILE"])
	return variables, container
}

// restricted checks the rules of the Pod Security Standard "restricted", and two more: the root of
// the container is read-only, and there is no token of a service account.
func (f *faults) restricted(spec corev1.PodSpec, container corev1.Container) {
	f.must(spec.AutomountServiceAccountToken != nil && !*spec.AutomountServiceAccountToken,
		"the pod gets the token of a service account, which it does not need")
	f.must(!spec.HostNetwork && !spec.HostPID && !spec.HostIPC, "the pod shares namespaces of the machine")
	pod, own := spec.SecurityContext, container.SecurityContext
	f.must(pod != nil && pod.RunAsNonRoot != nil && *pod.RunAsNonRoot && (pod.RunAsUser == nil || *pod.RunAsUser > 0),
		"the pod may run as root")
	f.must(pod != nil && pod.SeccompProfile != nil && pod.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"the pod has no seccompProfile RuntimeDefault")
	f.must(own != nil && own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem,
		"the container can write its root")
	f.must(own != nil && own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation,
		"the container can get more privileges")
	f.must(own != nil && own.Capabilities != nil && len(own.Capabilities.Add) == 0 &&
		slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}), "the container keeps capabilities")
	f.must(own == nil || (own.Privileged == nil || !*own.Privileged) && own.SeccompProfile == nil &&
		own.RunAsUser == nil && own.RunAsNonRoot == nil, "the container has settings against those of the pod")
	for _, v := range spec.Volumes {
		f.must(v.HostPath == nil, "the volume %s is a path of the machine", v.Name)
	}
}

// secret checks that path is in a volume of a Secret that must exist, and that only the program's
// user and group can read it.
func (f *faults) secret(spec corev1.PodSpec, container corev1.Container, path string) {
	f.must(path != "", "there is no secret: the program refuses to start")
	mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return strings.HasPrefix(path, m.MountPath+"/") && m.ReadOnly && slices.ContainsFunc(spec.Volumes,
			func(v corev1.Volume) bool {
				s := v.Secret
				return v.Name == m.Name && s != nil && (s.Optional == nil || !*s.Optional) && s.DefaultMode != nil &&
					*s.DefaultMode&0o007 == 0
			})
	})
	f.must(mounted, "the secret's file %q is not on a volume of a Secret that must exist, mounted read-only and closed "+
		"to others", path)
	f.must(spec.SecurityContext != nil && spec.SecurityContext.FSGroup != nil,
		"there is no fsGroup: the program's user may not read the secret")
}

func (f *faults) probe(kind string, probe *corev1.Probe, p Program, path string) {
	if probe == nil || probe.HTTPGet == nil {
		f.must(false, "there is no %s probe by HTTP", kind)
		return
	}
	f.must(p.Paths[path], "the program does not serve %s", path)
	f.must(probe.HTTPGet.Path == path, "the %s probe asks %s, want %s: readiness depends on the group, liveness must not",
		kind, probe.HTTPGet.Path, path)
	f.must(probe.HTTPGet.Port.IntValue() == p.HTTPPort, "the %s probe asks port %s, the program listens on %d", kind,
		probe.HTTPGet.Port.String(), p.HTTPPort)
}

func (f *faults) variables(container corev1.Container, p Program) map[string]string {
	values := map[string]string{}
	for i, v := range container.Env {
		_, twice := values[v.Name]
		f.must(!twice, "the variable %s is set twice", v.Name)
		values[v.Name] = expand(v.Value, values)
		f.must(!strings.Contains(strings.ReplaceAll(values[v.Name], "$(POD_IP)", ""), "$("),
			"the variable %s uses another one that is not defined before it: %s", v.Name, values[v.Name])
		if v.Name == "POD_IP" {
			f.must(v.ValueFrom != nil && v.ValueFrom.FieldRef != nil &&
				v.ValueFrom.FieldRef.FieldPath == "status.podIP", "POD_IP is not the pod's address")
			continue
		}
		helps := slices.ContainsFunc(container.Env[i+1:], func(later corev1.EnvVar) bool {
			return strings.Contains(later.Value, "$("+v.Name+")")
		})
		f.must(p.Variables[v.Name] || helps, "the program does not read the variable %s", v.Name)
		if v.Name == prefix+"ADVERTISE" {
			_, known := values["POD_IP"]
			f.must(known, "POD_IP is not defined before its use, so it would not be expanded")
		}
	}
	_, open := values[prefix+"SECRET"]
	f.must(!open, "the secret is in a variable, which kubectl describe shows")
	f.must(values[prefix+"ADVERTISE"] == fmt.Sprintf("$(POD_IP):%d", p.LockPort),
		"the advertised address is not that of the pod: the program would ask DNS, which may not know a new pod")
	return values
}

// expand replaces $(NAME) by the value of NAME, as Kubernetes does for variables that are defined
// before. The address of the pod has no value here and stays as it is.
func expand(text string, values map[string]string) string {
	for name, value := range values {
		if value != "" {
			text = strings.ReplaceAll(text, "$("+name+")", value)
		}
	}
	return text
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
