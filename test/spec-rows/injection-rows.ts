/** Rows and traps of spec/injection.md §1 to §4, each with its tests, or with the reason why it does not apply. */

export interface InjectionRow {
  readonly section: string;
  /** Text of the specification. */
  readonly row: string;
  readonly file: string;
  /** Prefix of a test title, or of a row of a test table, as written in the file. */
  readonly tests: readonly string[];
}

const decision = 'src/injection/decision/decision.test.ts';
const overlaps = 'src/injection/decision/overlaps.test.ts';
const chart = 'test/cluster/injection-chart.test.ts';
const bundles = 'src/discovery/controllers/webhook-bundles.test.ts';
const server = 'src/discovery/webhooks/webhook-server.test.ts';
const settings = 'src/discovery/webhooks/injector-settings.test.ts';
const review = 'src/injection/admission-review.test.ts';
const webhook = 'test/cluster/injection-webhook.test.ts';
const inject = 'src/injection/inject.test.ts';
const parts = 'src/injection/template/template-parts.test.ts';
const pods = 'src/injection/pod/redirected-pods.test.ts';
const openshift = 'src/injection/pod/openshift.test.ts';
const goTemplates = 'test/go-template/injection-templates.test.ts';
const merge = 'src/injection/merge/strategic-merge.test.ts';
const mergeOracle = 'test/injection/kubernetes-merge.test.ts';
const manifests = 'src/injection/manifests.test.ts';
const command = 'src/cli/commands/inject.test.ts';
const interception = 'test/node/mesh/interception.ts';
const check = 'test/cluster/check-installation.test.ts';

type Rows = readonly (readonly [row: string, file: string, ...tests: readonly string[]])[];

const rows: Readonly<Record<string, Rows>> = {
  '1.1': [
    ['entries of each revision and tag', decision, 'a pod with namespace labels %j and pod labels'],
    ['entries of the chart', chart, 'for the revision "%s" select the pods that the injector injects'],
    ['auto, with enableNamespacesByDefault', decision, '§1.1 namespaces without labels are injected only if'],
    ['enabled and another revision: the default one', decision, 'a pod with namespace labels %j and pod labels'],
    ['disabled: nothing', decision, 'a pod with namespace labels %j and pod labels'],
    ['as ANNOTATION only: nothing (istio#40512)', decision, '§1.1 a pod with only the annotation,'],
    ['only revisions, no default tag: nothing (istio#32746)', decision, '§1.1 a pod with only the annotation,'],
    ['any other word: nothing', decision, 'a pod with namespace labels %j and pod labels'],
    ['two configurations that match one pod', overlaps, 'two configurations of the default revision overlap'],
    ['the second injection is idempotent', webhook, 'a pod that two webhook configurations select has one sidecar'],
  ],
  '1.2': [
    [
      'a present label wins, also an empty one',
      decision,
      'label true before annotation false',
      'an empty label before',
    ],
    ['words of 16', decision, 'label yes, a value of Istio 1.16'],
    ['other words fall to the policy, with a warning', decision, 'policy enabled, because the', 'an ignored value'],
    ['never and always selectors', decision, 'neverInjectSelector', 'alwaysInjectSelector before'],
    ['an empty selector matches nothing', decision, 'the policy, because an empty neverInjectSelector'],
    ['an unknown policy: nobody', decision, 'an unknown policy, even with a label'],
    ['hostNetwork comes first', decision, 'host network'],
    ['the four namespaces come first', decision, 'a system namespace'],
    ['namespace of the pod, or of the request', review, '§1.2 the namespace is that of the pod'],
  ],
  '1.3': [
    ['names, labels, service, path, side effects', chart, 'for tags select pods with the tag, call the revision'],
    ['reinvocationPolicy', chart, 'for tags select pods with the tag, call the revision'],
    ['a matchCondition leaves out our own pods (istio#26380, #21147)', chart, 'pods of the control plane are created'],
    [
      'the CA bundle of entries that call us',
      bundles,
      'WebhookBundles writes the root to entries that call this control plane',
    ],
    [
      'configurations of other revisions',
      bundles,
      'WebhookBundles does not write a mutating configuration of another revision',
    ],
    ['certificate per handshake', server, 'a renewed certificate is presented to the next connection'],
    ['TLS 1.2 or later', server, 'a client of TLS 1.1 is rejected'],
    ['/ready', server, 'without settings each review is rejected with the reason, and /ready responds'],
  ],
  '1.4': [
    ['the ConfigMap is followed', settings, 'the content of both keys applies, and a change applies immediately'],
    ['absent: errors with its name', server, 'without settings each review is rejected with the reason'],
    ['invalid content', settings, 'invalid content keeps the last valid one'],
    ['the key template is ignored', 'src/injection/settings.decode.test.ts', 'a template is YAML or a Go template'],
  ],
  '1.5': [
    ['content type exactly application/json', server, 'another content type', 'no content type'],
    ['an empty body: 400', server, 'an empty body'],
    [
      'no AdmissionReview: an empty uid',
      server,
      'a body that is not JSON, too deeply nested or not a review is rejected',
    ],
    ['the failure names pod, annotation and value', review, 'a rejection names the pod, the annotation and the value'],
    ['outcomes are counted apart', server, 'without settings each review is rejected with the reason'],
    ['any body has a review', review, 'reviews '],
    ['managedFields', review, '§1.5 no patch contains managed fields'],
    ['keys of the URL', review, 'the path %s adds variables to the proxy', '/inject/cluster/west/net/n1'],
    ['an odd last key is ignored', review, '/inject/zone/a--slash--b/odd'],
  ],
  '2.1': [
    ['DeploymentMeta, TypeMeta', pods, '§2.1 DeploymentMeta of a pod of %s', 'a Job of a CronJob', 'no controller'],
    ['ObjectMeta, Spec: after stripping', pods, '§4.5 changed settings are applied to an injected pod, and fields'],
    ['ProxyConfig: mesh, objects, annotation', parts, '§2.1 ProxyConfig is merged from the mesh, the objects'],
    ['ProxyImage, ProxyInitImage', parts, '§2.1 ProxyImage is built of %s', '§2.1 ProxyImage has the type'],
    ['a tag that ends in a type has it replaced', parts, 'a variant of the tag'],
    ['type default: no suffix', parts, 'the variant default'],
    ['a value with "/" is taken whole', parts, 'a value with a complete reference', 'an annotation with a complete'],
    ['NativeSidecars', inject, '§2.1 NativeSidecars are used if a setting enables them'],
    ['NativeSidecars auto', openshift, '§2.1 NativeSidecars are detected for %s'],
    ['ProxyUID of OpenShift', openshift, '§2.1 ProxyUID of a namespace with %s'],
    ['ProxyUID of the proxy', parts, '§2.1 ProxyUID of the namespace is the user of the proxy,'],
  ],
  '2.2': [
    [
      'functions beside those of sprig',
      goTemplates,
      '§2.2 templates can use %s',
      'annotation',
      'excludeInboundPort',
      'appendMultusNetwork',
    ],
    ["indent: not the first line, replaces sprig's", goTemplates, 'indent'],
    ['contains(needle, haystack)', goTemplates, 'contains'],
    ['protoToJSON drops defaults', goTemplates, 'protoToJSON'],
    ['functions of H', goTemplates, 'omit, omitNil', 'strdict, mergeMaps', 'toJsonMap', 'otelResourceAttributes'],
    ["env, and sprig's env and expandenv", goTemplates, 'env', '§2.2 the function %s of sprig'],
    ["sprig's text map", goTemplates, 'a pod gets the output of its Go templates'],
    ['without the package: rejected', goTemplates, 'without the package a pod that names a Go template'],
    [
      'a template can loop',
      goTemplates,
      'an endless loop is stopped',
      'a text that doubles',
      'a recursion without end',
    ],
  ],
  '3.1': [
    ['annotation istio.io/rev', inject, 'labels, annotations and environment name the workload'],
    ['canonical name', parts, '§3.1 the label of the canonical name'],
    ['readiness and startup probe', parts, '§3.1 the probes of the proxy'],
    ['env', parts, '§3.1 the environment has limits and the node'],
    ['workload name by label', parts, '§3.1 the workload name is that of the label'],
    ['token volume always', parts, '§3.1 the token is always projected'],
    ['istio-ca-crl', parts, '§3.1 the token is always projected'],
    ['init security with CNI', parts, '§3.1 with CNI the validation runs as the user'],
    ['inbound port list annotation with CNI', parts, '§3.1 with CNI the validation runs as the user'],
    ['provider multus', parts, '§3.1 the plugin of Multus is added once'],
    ['NONE mode', parts, '§3.1 in mode NONE there is no init container'],
    ['MUST NOT: fsGroup of a container, restartPolicy of init', parts, '§3.1 no container has an fsGroup'],
    ['annotations with quantities', parts, '§3.1 quantities of annotations have no control characters'],
  ],
  '3.2': [
    ['only annotations count for resources', parts, '§3.2 any annotation for resources replaces all values'],
    ['a request above its limit', inject, 'a container with the name of an init container of the sidecar'],
    ['default values', parts, '§3.2 the defaults of the chart apply'],
    ['CA_ADDR', parts, '§3.2 CA_ADDR is the value'],
    ['ISTIO_META_OWNER', parts, '§3.2 ISTIO_META_OWNER has the namespace default'],
    ['mesh id', parts, '§3.2 the mesh ID is the value'],
    ['ISTIO_META_POD_PORTS, ISTIO_META_APP_CONTAINERS', parts, '§3.2 ports and names are those of the containers'],
    ['proxyMetadata on proxy and init', parts, '§3.2 proxyMetadata is in the environment'],
    ['bootstrap override', parts, '§3.2 the ConfigMap of a bootstrap override is mounted'],
    ['userVolume, userVolumeMount', parts, '§3.2 volumes and mounts of annotations are added'],
    ['no DNS policy, aliases or grace period', parts, '§3.2 fields of the pod that the sidecar does not need'],
    ['imagePullSecrets', parts, '§3.2 pull secrets of the values are merged by name'],
    ['native: order and preStop', inject, 'a native sidecar runs before the init containers of the pod'],
    ['not native: order and postStart', inject, 'a sidecar that is not native is the last container'],
    ['validation first, istio-init last', parts, '§3.2 the validation comes first'],
    ['lifecycle of the values', parts, '§3.2 hooks of the values replace'],
    ['POST /drain', 'src/agent/status/status-server.test.ts', '§6.2: /drain requires POST'],
    ['TPROXY', inject, 'with TPROXY the proxy runs as root with NET_ADMIN'],
    ['capNetBindService', parts, '§3.2 a proxy that binds privileged ports'],
  ],
  '3.3': [
    ['args, no init, no tlsMode, sysctl', inject, 'a gateway has no redirection and the role router'],
    ['security context of the values, interception mode, volumes', parts, '§3.3 a gateway has the security context'],
    ['image auto', inject, 'the pull policy that the API server sets for the image auto'],
    ['grpc-agent', parts, '§3.3 the template grpc-agent runs the agent without Envoy'],
    ['kube-gateway', 'src/injection/gateway/gateway-deployment.test.ts', 'a Gateway'],
  ],
  '3.4': [
    ['1: all errors of annotations in one message', parts, '§3.4 one message lists all invalid annotations,'],
    ['2: strip, reinsert overrides', pods, '§4.5 changed settings are applied to an injected pod, and fields'],
    ['3: templates in order', inject, 'templates of the mesh and built-in ones are merged in the'],
    [
      '4: overlapping containers of the user on top',
      inject,
      'fields of a user-written container istio-proxy override those',
    ],
    ['5: environment of the URL', parts, '§3.4 variables of the URL replace those of the proxy'],
    ['6: Prometheus merge', pods, '§3.4 metrics of the application are merged for any spelling of'],
    ['reserved ports', pods, '§3.4 metrics on port %i of the sidecar are rejected'],
    ['8: probes', inject, 'probes are sent to the agent'],
    ['9: network label, status, annotations', inject, 'labels, annotations and environment name the workload'],
    ['9: injectedAnnotations', parts, '§3.4 annotations of the settings are added'],
    ['10: order', inject, 'a native sidecar runs before the init containers of the pod'],
    ['11: JSON patch from the original', review, 'a review of %s has a response of the same version and uid'],
    ['names of the status, revision', parts, '§3.4 the status annotation lists the containers'],
  ],
  '4.1': [
    ['containers and init containers, paths', pods, '§4.1 probes and hooks of containers and init containers'],
    ['exec and sleep untouched', inject, 'a probe of an undeclared port, of the status port or by a command'],
    ['a named port that is not declared', pods, '§4.1 a probe of a named port that the container does not'],
    ['one port for the test and the rewriting', pods, '§4.1 the port of the annotation is the one'],
    ['scheme and host', pods, '§4.1 scheme and host of a probe'],
    ['a probe on the status port by name', pods, '§4.1 a probe on the status port by its name'],
    ['re-injection merges (istio#56102)', pods, '§4.1 injecting again also redirects the probes of containers'],
    [
      'containers of later webhooks (istio#36353)',
      pods,
      '§4.1 injecting again also redirects the probes of containers',
    ],
    ['probes under STRICT', interception, 'passes probes of all kinds to the application under STRICT'],
  ],
  '4.2': [
    ['a user-written istio-proxy moves to initContainers', pods, '§4.2 a user-written istio-proxy becomes a native'],
    ['a pod of a proxy alone', inject, 'a pod of a proxy alone does not get a native sidecar'],
  ],
  '4.3': [
    ['field by field, env by name, args wholly, image auto', pods, '§4.3 arguments of a user-written istio-proxy'],
    ['probes and hooks as a whole', inject, '§4.3 a probe, hook or variable of a user-written istio-proxy'],
    [
      'saved only at the first injection',
      pods,
      '§4.3 fields that the user wrote are saved only at the first injection',
    ],
    ['runAsUser', pods, '§4.3 redirection and its validation omit the user'],
    ['TPROXY forces uid 0 (istio#51012)', pods, '§4.3 with TPROXY a user-written istio-proxy runs as root'],
    ['istio-init', pods, '§4.3 fields of a user-written istio-init override'],
    ["OpenShift: the proxy's uid equals the application's (istio#52614)", pods, '§4.3 a user of istio-proxy that an'],
  ],
  '4.4': [
    ['lists with a merge key', merge, 'items of a list with a merge key are merged'],
    ['args, command, tolerations', merge, 'items of a list with a merge key are merged'],
    ['empty lists, null, $patch', merge, 'an empty list with a merge key changes nothing'],
    ["equal to Kubernetes' own", mergeOracle, 'a random patch gives the same result as in Kubernetes'],
    ['a volume of an equal name', inject, 'a volume with a name of the sidecar'],
  ],
  '4.5': [
    [
      'any pod, template list, native or not, revision, status port',
      inject,
      'injecting a pod twice has the same result as',
    ],
    ['prometheus annotations', pods, '§4.5 annotations for metrics that an earlier injector wrote'],
    ['what another webhook added stays (istio#54562)', pods, '§4.5 changed settings are applied to an injected'],
  ],
  '4.6': [
    ['kinds', manifests, '§4.6 the pod template of a %s is injected', 'a list, a CronJob, JSON and a pod are injected'],
    ['unregistered kinds byte for byte', manifests, 'all bytes outside of pod templates are unchanged'],
    ['unchanged, and a line on stderr', command, 'pilot-discovery inject prints a note for a pod that is not injected'],
    [
      'already injected',
      manifests,
      '§4.6 an injected pod is injected again',
      'injecting injected manifests changes nothing',
    ],
  ],
  '4.7': [
    [
      'pods not created: preflight',
      check,
      'reports pods without a sidecar, old sidecars, wrong labels and an unreachable webhook',
    ],
    ['control plane cannot start again', chart, 'pods of the control plane are created'],
    ['not injected, silently', review, 'a pod that is skipped is allowed without a patch'],
    ['fight over failurePolicy, caBundle', chart, 'keeps the CA bundles and the failure policy'],
    ['x509 after CA change', bundles, 'WebhookBundles does not write a configuration with the current root'],
    ['1337 used by the app', inject, 'runs as the user of the sidecar', 'runs the proxy image with the user'],
  ],
};

export const injectionRows: readonly InjectionRow[] = Object.entries(rows).flatMap(([section, list]) =>
  list.map(([row, file, ...tests]) => ({ section, row, file, tests })),
);
