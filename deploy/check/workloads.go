package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// StatefulSet returns the faults of a file with a StatefulSet. The file must configure the
// program with Founders.
func StatefulSet(file string, p Program) []error {
	var f faults
	m, err := decode(file)
	if err != nil || m.set == nil {
		return []error{fmt.Errorf("there is no StatefulSet: %w", err)}
	}
	set := m.set.Spec
	labels := set.Template.Labels
	f.around(m, p, labels, set.Selector)
	variables, container := f.pod(set.Template.Spec, p)
	f.must(set.ServiceName == m.service.Name, "serviceName is %q, the Service is %q: the pods would have no names",
		set.ServiceName, m.service.Name)
	f.must(set.PodManagementPolicy == appsv1.ParallelPodManagement,
		"podManagementPolicy is not Parallel: the first pod would wait for the second, which waits for it")
	f.must(set.MinReadySeconds > 0, "minReadySeconds is not set: a rolling update could stop the next voter before the "+
		"last one has caught up")
	f.must(set.UpdateStrategy.RollingUpdate == nil,
		"the rolling update has settings of its own: the default, one pod at a time, keeps a majority")
	f.founders(m, p, variables)
	f.apart(set.Template.Spec, labels)
	f.directory(set, container, variables[prefix+"DIR"])
	return f
}

// founders checks that the names and addresses of the founders are those of pods, and that the
// number of founders is odd and at least three.
func (f *faults) founders(m manifest, p Program, variables map[string]string) {
	founders := split(variables[prefix+"FOUNDERS"])
	replicas := 1
	if m.set.Spec.Replicas != nil {
		replicas = int(*m.set.Spec.Replicas)
	}
	f.must(len(founders) >= 3 && len(founders)%2 == 1 && len(founders) <= replicas,
		"%d founders of %d pods: want an odd number, three or more, of pods that exist", len(founders), replicas)
	var join []string
	for i, name := range founders {
		f.must(name == fmt.Sprintf("%s-%d", m.set.Name, i), "founder %d is %q, the pod is %s-%d", i, name, m.set.Name,
			i)
		join = append(join, fmt.Sprintf("%s.%s:%d", name, m.service.Name, p.LockPort))
	}
	f.must(slices.Equal(split(variables[prefix+"JOIN"]), join),
		"the addresses to join are not those of the founders, %v", join)
	_, both := variables[prefix+"REPLICAS"]
	f.must(!both, "there are Founders and Replicas: the program refuses to start")
}

func (f *faults) apart(spec corev1.PodSpec, labels map[string]string) {
	machines := spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil &&
		slices.ContainsFunc(spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			func(t corev1.PodAffinityTerm) bool {
				return t.TopologyKey == corev1.LabelHostname && selects(t.LabelSelector, labels)
			})
	f.must(machines, "no required anti-affinity by machine: two voters on one machine would fail together")
	f.must(spreads(spec, corev1.LabelTopologyZone, labels), "the pods are not spread over zones")
}

func spreads(spec corev1.PodSpec, key string, labels map[string]string) bool {
	return slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == key && c.MaxSkew == 1 && c.WhenUnsatisfiable != "" && selects(c.LabelSelector, labels)
	})
}

// directory checks that the directory is on a volume that belongs to one pod and is kept when the
// pod ends.
func (f *faults) directory(set appsv1.StatefulSetSpec, container corev1.Container, dir string) {
	kept := slices.ContainsFunc(container.VolumeMounts, func(v corev1.VolumeMount) bool {
		return strings.HasPrefix(dir, v.MountPath+"/") && slices.ContainsFunc(set.VolumeClaimTemplates,
			func(c corev1.PersistentVolumeClaim) bool {
				return c.Name == v.Name && slices.Equal(c.Spec.AccessModes,
					[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}) &&
					!c.Spec.Resources.Requests.Storage().IsZero()
			})
	})
	f.must(kept, "the directory %q is not on a volume claimed for each pod: a restarted voter would be a new instance",
		dir)
	policy := set.PersistentVolumeClaimRetentionPolicy
	f.must(policy == nil, "the volumes' retention has settings of its own: the default keeps them, and a directory "+
		"must be kept")
}

// Deployment returns the faults of a file with a Deployment. The file must configure the program
// with Replicas.
func Deployment(file string, p Program) []error {
	var f faults
	m, err := decode(file)
	if err != nil || m.deployment == nil {
		return []error{fmt.Errorf("there is no Deployment: %w", err)}
	}
	d := m.deployment.Spec
	labels := d.Template.Labels
	f.around(m, p, labels, d.Selector)
	variables, container := f.pod(d.Template.Spec, p)
	rolling := d.Strategy.RollingUpdate
	f.must(rolling != nil && rolling.MaxSurge != nil && rolling.MaxSurge.String() == "0",
		"maxSurge is not 0: more instances than Replicas would run")
	f.must(rolling != nil && rolling.MaxUnavailable != nil && rolling.MaxUnavailable.String() == "1",
		"maxUnavailable is not 1: two voters could be stopped at once")
	f.must(d.Replicas != nil && *d.Replicas >= 3 && variables[prefix+"REPLICAS"] == strconv.Itoa(int(*d.Replicas)),
		"%sREPLICAS is not the number of replicas, three or more: a second group could be founded, or none",
		prefix)
	f.must(variables[prefix+"JOIN"] == fmt.Sprintf("%s:%d", m.service.Name, p.LockPort),
		"the address to join is not that of the Service")
	_, founders := variables[prefix+"FOUNDERS"]
	_, dir := variables[prefix+"DIR"]
	f.must(!founders && !dir, "a Deployment's pods have no names and no volumes of their own: neither Founders nor Dir "+
		"can be right")
	f.runDirectory(d.Template.Spec, container, variables[prefix+"RUN_DIR"])
	f.must(spreads(d.Template.Spec, corev1.LabelHostname, labels) &&
		spreads(d.Template.Spec, corev1.LabelTopologyZone, labels), "the pods are not spread over machines and zones")
	f.must(slices.ContainsFunc(d.Template.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == corev1.TaintNodeUnreachable && t.Operator == corev1.TolerationOpExists &&
			t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds == nil
	}), "pods of a machine that is cut off are replaced while they still run: more instances than Replicas")
	return f
}

// runDirectory checks that the run directory is on a volume in memory that outlives the container
// and ends with the pod.
func (f *faults) runDirectory(pod corev1.PodSpec, container corev1.Container, dir string) {
	outlives := slices.ContainsFunc(container.VolumeMounts, func(v corev1.VolumeMount) bool {
		return strings.HasPrefix(dir, v.MountPath+"/") && slices.ContainsFunc(pod.Volumes, func(p corev1.Volume) bool {
			return p.Name == v.Name && p.EmptyDir != nil && p.EmptyDir.Medium == corev1.StorageMediumMemory
		})
	})
	f.must(outlives, "the run directory %q is not on an emptyDir in memory: the locks of a container that was killed "+
		"would stay taken for the TTL", dir)
}
