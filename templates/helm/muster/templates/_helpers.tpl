{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /* Names, labels and the pod that all kinds share. */ -}}

{{- define "muster.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "muster.labels" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ include "muster.name" . | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .Values.kind | quote }}
{{- with .Values.run.id }}
muster.dev/run: {{ . | quote }}
muster.dev/round: {{ $.Values.run.round | quote }}
{{- end }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "muster.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else if eq (toString $tag) "latest" -}}
{{ fail "image.tag: latest may change between two nodes of one run; set a version or image.digest" }}
{{- else -}}
{{ .Values.image.repository }}:{{ $tag }}
{{- end }}
{{- end }}

{{- define "muster.planFile" -}}
{{- if .Values.plan.text -}}/muster/input/{{ .Values.plan.name }}{{- else -}}{{ .Values.plan.file }}{{- end -}}
{{- end }}

{{- /* Arguments of pod.sh as a list; `more` are those of one kind. */ -}}
{{- define "muster.args" -}}
{{- $v := .root.Values -}}
{{- $args := list "/muster/input/pod.sh" (include "muster.planFile" .root) -}}
{{- if $v.scenario }}{{ $args = concat $args (list "--simulate" "/muster/input/scenario.toml") }}{{ end -}}
{{- if $v.waivers }}{{ $args = concat $args (list "--waivers" "/muster/input/waivers.toml") }}{{ end -}}
{{- if $v.run.id }}{{ $args = concat $args (list "--fleet-id" $v.run.id) }}{{ end -}}
{{- concat $args .more $v.run.options $v.options | toJson -}}
{{- end }}

{{- /* Nodes that a pod may run on: the named ones, and with `alone` none that runs another pod of this release. */ -}}
{{- define "muster.affinity" -}}
{{- $v := .root.Values -}}
{{- if $v.affinity -}}
{{ toYaml $v.affinity }}
{{- else -}}
{{- if .names }}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchFields:
          {{- /* matchFields takes one name; several names need one term each. */}}
          - {key: metadata.name, operator: In, values: [{{ first .names | quote }}]}
      {{- range rest .names }}
      - matchFields:
          - {key: metadata.name, operator: In, values: [{{ . | quote }}]}
      {{- end }}
{{- end }}
{{- if .alone }}
podAntiAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector: &self
        matchLabels: {app.kubernetes.io/name: muster, app.kubernetes.io/instance: {{ include "muster.name" .root | quote }}}
{{- if $v.topology.key }}
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: {{ $v.topology.key | quote }}
      labelSelector: *self
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "muster.podMetadata" -}}
labels:
  {{- include "muster.labels" . | nindent 2 }}
{{- if or .Values.topology.required .Values.topology.preferred }}
annotations:
  {{- with .Values.topology.required }}
  kueue.x-k8s.io/podset-required-topology: {{ . | quote }}
  {{- end }}
  {{- with .Values.topology.preferred }}
  kueue.x-k8s.io/podset-preferred-topology: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "muster.queueLabel" -}}
{{- with .Values.queue }}
kueue.x-k8s.io/queue-name: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "muster.podSecurity" -}}
{{- $root := or .Values.lockMemory .Values.kernelLog -}}
runAsNonRoot: {{ not $root }}
runAsUser: {{ ternary 0 65532 $root }}
runAsGroup: {{ ternary 0 65532 $root }}
fsGroup: {{ ternary 0 65532 $root }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "muster.containerSecurity" -}}
{{- if .Values.kernelLog -}}
privileged: true
readOnlyRootFilesystem: true
{{- else -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  {{- if .Values.lockMemory }}
  add: [IPC_LOCK]
  {{- end }}
{{- end }}
{{- end }}

{{- /* Where a pod's run is: /muster/run/NODE/RUN. A container that starts again resumes it; another pod, or round, begins its own. */ -}}
{{- define "muster.runEnv" -}}
- {name: MUSTER_NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
{{- if .Values.run.id }}
- {name: MUSTER_RUN_NAME, value: {{ printf "%s.%d" .Values.run.id (int .Values.run.round) | quote }}}
{{- else }}
- {name: MUSTER_RUN_NAME, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
{{- end }}
{{- end }}

{{- define "muster.env" -}}
{{- $fabrics := .root.Files.Get "files/fabrics.yaml" | fromYaml -}}
{{- $fabric := dict -}}
{{- if .root.Values.fabric -}}
{{- if not (hasKey $fabrics .root.Values.fabric) -}}
{{- fail (printf "fabric: %s is unknown; one of %s" .root.Values.fabric (keys $fabrics | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $fabric = get $fabrics .root.Values.fabric -}}
{{- end -}}
{{ include "muster.runEnv" .root }}
- {name: MUSTER_NNODES, value: {{ .count | quote }}}
{{- with .rendezvous }}
- {name: MUSTER_RENDEZVOUS, value: {{ . | quote }}}
{{- end }}
- {name: HOME, value: /tmp}
{{- range $name, $value := merge (dict) .root.Values.env $fabric }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "muster.resources" -}}
{{- $all := merge (dict) .Values.resources .Values.extraResources -}}
{{- if gt (int .Values.gpus) 0 }}{{ $_ := set $all .Values.gpuResource .Values.gpus }}{{ end -}}
{{- range $name, $amount := $all }}
{{ $name }}: {{ $amount | toString | quote }}
{{- end }}
{{- end }}

{{- /* The container that runs the plan. In: root, count, rendezvous, more, secret. */ -}}
{{- define "muster.container" -}}
- name: muster
  image: {{ include "muster.image" .root | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [/bin/sh]
  args: {{ include "muster.args" (dict "root" .root "more" .more) }}
  workingDir: /opt/muster/share/muster
  env:
    {{- include "muster.env" . | nindent 4 }}
  resources:
    requests:
      {{- include "muster.resources" .root | indent 6 }}
    limits:
      {{- include "muster.resources" .root | indent 6 }}
  securityContext:
    {{- include "muster.containerSecurity" .root | nindent 4 }}
  volumeMounts:
    - {name: input, mountPath: /muster/input, readOnly: true}
    - {name: run, mountPath: /muster/run}
    - {name: tmp, mountPath: /tmp}
    - {name: shm, mountPath: /dev/shm}
    {{- if .secret }}
    - {name: secret, mountPath: /muster/secret, readOnly: true}
    {{- end }}
    {{- if .root.Values.hostSysfs }}
    - {name: sysfs, mountPath: /sys, readOnly: true}
    {{- end }}
{{- end }}

{{- define "muster.secretName" -}}
{{- include "muster.name" . }}-secret
{{- end }}

{{- /* In: root, secret. A secret is a list of projected sources. */ -}}
{{- define "muster.volumes" -}}
- name: input
  configMap: {name: {{ include "muster.name" .root }}-input}
- name: run
  {{- if .root.Values.runVolume }}
  {{- toYaml .root.Values.runVolume | nindent 2 }}
  {{- else }}
  emptyDir: {sizeLimit: {{ .root.Values.runSize }}}
  {{- end }}
- name: tmp
  emptyDir: {sizeLimit: 1Gi}
- name: shm
  emptyDir: {medium: Memory, sizeLimit: {{ .root.Values.shm }}}
{{- if .secret }}
- name: secret
  projected:
    defaultMode: 0440
    sources:
      {{- .secret | toYaml | nindent 6 }}
{{- end }}
{{- if .root.Values.hostSysfs }}
- name: sysfs
  hostPath: {path: /sys, type: Directory}
{{- end }}
{{- end }}

{{- /* Everything of a pod but its containers and volumes. In: root, names, alone. */ -}}
{{- define "muster.podBase" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 60
{{- if .root.Values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- with .root.Values.priorityClass }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "muster.affinity" . | trim }}
affinity:
  {{- . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "muster.podSecurity" .root | nindent 2 }}
{{- end }}

{{- /* A pod that runs the plan once. In: root, names, alone, count, rendezvous, more, secret. */ -}}
{{- define "muster.podSpec" -}}
restartPolicy: Never
{{ include "muster.podBase" . }}
containers:
  {{- include "muster.container" . | nindent 2 }}
volumes:
  {{- include "muster.volumes" . | nindent 2 }}
{{- end }}

{{- /* No pod is ever replaced: a second run of a rejected node until it passes is no acceptance. In: root, count, indexed, ttl. */ -}}
{{- define "muster.jobLimits" -}}
activeDeadlineSeconds: {{ int64 .root.Values.deadlineSeconds }}
{{- if .ttl }}
ttlSecondsAfterFinished: {{ int64 .root.Values.ttlSeconds }}
{{- end }}
{{- if .indexed }}
completionMode: Indexed
completions: {{ .count }}
parallelism: {{ .count }}
backoffLimitPerIndex: 0
maxFailedIndexes: {{ .count }}
{{- else }}
backoffLimit: 0
{{- end }}
{{- end }}
