{{- define "tradewind.sqlList" -}}
{{- range $at, $each := . }}{{ if $at }}, {{ end }}'{{ $each | replace "'" "''" }}'{{ end }}
{{- end }}

{{/* Tasks that wait for a worker of these queues or run on one: with `concurrency` as target, the workers that are needed. */}}
{{- define "tradewind.queueQuery" -}}
SELECT coalesce(sum(waiting + running), 0) FROM queue_depth WHERE executor = 'queue' AND queue IN ({{ include "tradewind.sqlList" . }})
{{- end }}

{{/* Triggers that have to run now. Timers need no triggerer; a trigger with two replicas counts twice. */}}
{{- define "tradewind.triggerQuery" -}}
SELECT coalesce(sum(triggers), 0) FROM trigger_depth WHERE queue IN ({{ include "tradewind.sqlList" . }})
{{- end }}

{{/* The series of this release: the labels come from the ServiceMonitor. */}}
{{- define "tradewind.series" -}}
namespace="{{ .Release.Namespace }}", service="{{ include "tradewind.fullname" . }}-api"
{{- end }}

{{/* A regular expression in a string of PromQL: both need backslashes. */}}
{{- define "tradewind.queuePattern" -}}
{{- range $at, $each := . }}{{ if $at }}|{{ end }}{{ $each | regexQuoteMeta | replace "\\" "\\\\" | replace "\"" "\\\"" }}{{ end }}
{{- end }}

{{/* As the queries of the views. Empty queues have no series: 0, but only while some API server answers. */}}
{{- define "tradewind.queueMetric" -}}
sum(max by (queue, state) (tradewind_queue_tasks{ {{- include "tradewind.series" .root }}, executor="queue", queue=~"{{ include "tradewind.queuePattern" .queues }}"})) or 0 * max(tradewind_info{ {{- include "tradewind.series" .root }}})
{{- end }}

{{- define "tradewind.triggerMetric" -}}
sum(max by (queue) (tradewind_triggers{ {{- include "tradewind.series" .root }}, queue=~"{{ include "tradewind.queuePattern" .queues }}"})) or 0 * max(tradewind_info{ {{- include "tradewind.series" .root }}})
{{- end }}

{{/* root; component; autoscaling; sql, metric: the queries; target: of both, per pod. */}}
{{- define "tradewind.scaledObject" }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ include "tradewind.fullname" .root }}-{{ .component }}
  labels: {{- include "tradewind.labels" . | nindent 4 }}
spec:
  scaleTargetRef: { name: {{ include "tradewind.fullname" .root }}-{{ .component }} }
  pollingInterval: 5
  minReplicaCount: {{ .autoscaling.minReplicas }}
  maxReplicaCount: {{ .autoscaling.maxReplicas }}
  triggers:
    {{- if .root.Values.metrics.prometheusUrl }}
    - type: prometheus
      metadata:
        serverAddress: {{ .root.Values.metrics.prometheusUrl | quote }}
        query: {{ .metric | quote }}
        threshold: {{ .target | toString | quote }}
        # Without an answer the number of pods stays.
        ignoreNullValues: "false"
    {{- else }}
    - type: postgresql
      metadata:
        query: {{ .sql | quote }}
        targetQueryValue: {{ .target | toString | quote }}
      authenticationRef: { name: {{ include "tradewind.fullname" .root }}-database }
    {{- end }}
{{- end }}
