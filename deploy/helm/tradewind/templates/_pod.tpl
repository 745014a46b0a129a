{{- define "tradewind.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tradewind.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "tradewind.labels" -}}
{{ include "tradewind.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "tradewind.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "tradewind.apiUrl" -}}
http://{{ include "tradewind.fullname" . }}-api.{{ .Release.Namespace }}.svc:{{ .Values.api.service.port }}
{{- end }}

{{- define "tradewind.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "tradewind.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* Variables of Secrets: a list of [variable, entry of values.secrets]. */}}
{{- define "tradewind.secretEnv" -}}
{{- range .secrets }}
{{- $secret := index $.root.Values.secrets (index . 1) }}
- name: {{ index . 0 }}
  valueFrom: { secretKeyRef: { name: {{ $secret.name }}, key: {{ $secret.key }} } }
{{- end }}
{{- end }}

{{/*
One Deployment. root; component; args: of the command; settings: of the component in values; env: further variables;
secrets: as above; graceSeconds; replicas: null if an autoscaler sets them; container: further fields of the container, with its probes; without it, those of a service without a port;
init: its init containers; mounts, volumes: lists; isWorker: has nothing of the services; account: its service account may call the Kubernetes API.
*/}}
{{- define "tradewind.deployment" -}}
{{- $root := .root }}
{{- $name := printf "%s-%s" (include "tradewind.fullname" $root) .component }}
{{- $env := mergeOverwrite (dict) (deepCopy $root.Values.env) .env (deepCopy .settings.env) }}
{{- if not .container }}{{ $_ := set $env "TRADEWIND_HEALTH_PORT" 8090 }}{{ end }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels: {{- include "tradewind.labels" . | nindent 4 }}
spec:
  {{- if ne .replicas nil }}
  replicas: {{ .replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "tradewind.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "tradewind.labels" . | nindent 8 }}
      {{- with .settings.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- if .account }}
      serviceAccountName: {{ $name }}
      {{- end }}
      automountServiceAccountToken: {{ .account | default false }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .graceSeconds }}
      securityContext: {{- include "tradewind.podSecurityContext" $root | nindent 8 }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .init }}
      initContainers: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "tradewind.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: {{ toJson .args }}
          securityContext: {{- include "tradewind.securityContext" $root | nindent 12 }}
          resources: {{- toYaml .settings.resources | nindent 12 }}
          env:
            {{- include "tradewind.secretEnv" . | nindent 12 }}
            {{- range $key, $value := $env }}
            - { name: {{ $key }}, value: {{ $value | toString | quote }} }
            {{- end }}
          {{- if and $root.Values.envFrom (not .isWorker) }}
          envFrom: {{- toYaml $root.Values.envFrom | nindent 12 }}
          {{- end }}
          {{- with .container }}
          {{- toYaml . | nindent 10 }}
          {{- else }}
          ports: [{ name: health, containerPort: 8090 }]
          startupProbe: { httpGet: { path: /live, port: health }, periodSeconds: 2, failureThreshold: 60 }
          livenessProbe: { httpGet: { path: /live, port: health }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
          readinessProbe: { httpGet: { path: /ready, port: health }, periodSeconds: 5, timeoutSeconds: 5 }
          {{- end }}
          volumeMounts:
            - { name: home, mountPath: /var/lib/tradewind }
            - { name: tmp, mountPath: /tmp }
            {{- if and $root.Values.sharedVolume (not .isWorker) }}
            - { name: shared, mountPath: /var/lib/tradewind/logs, subPath: logs }
            - { name: shared, mountPath: /var/lib/tradewind/outputs, subPath: outputs }
            {{- end }}
            {{- with .mounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - { name: home, emptyDir: {} }
        - { name: tmp, emptyDir: {} }
        {{- if and $root.Values.sharedVolume (not .isWorker) }}
        - name: shared
          {{- toYaml $root.Values.sharedVolume | nindent 10 }}
        {{- end }}
        {{- with .volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .settings.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .settings.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .settings.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "tradewind.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "tradewind.selector" . | nindent 6 }}
{{- end }}
