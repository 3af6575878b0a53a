/** Requirements and traps of injection by section (§1 to §4), each with its tests, or with the reason why it does not apply. */

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
    ['entries of the chart', chart, 'select the same pods as the injector for the revision "%s"'],
    [
      'auto, with enableNamespacesByDefault',
      decision,
      'a namespace without labels is injected only if the settings enable this',
    ],
    ['enabled and another revision: the default one', decision, 'a pod with namespace labels %j and pod labels'],
    ['disabled: nothing', decision, 'a pod with namespace labels %j and pod labels'],
    [
      'as ANNOTATION only: nothing (istio#40512)',
      decision,
      'a pod is sent to no configuration if it has only the annotation or its',
    ],
    [
      'only revisions, no default tag: nothing (istio#32746)',
      decision,
      'a pod is sent to no configuration if it has only the annotation or its',
    ],
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
    [
      'other words fall to the policy, with a warning',
      decision,
      'policy enabled, because the',
      'an ignored label or annotation value is reported',
    ],
    ['never and always selectors', decision, 'neverInjectSelector', 'alwaysInjectSelector before'],
    ['an empty selector matches nothing', decision, 'the policy, because an empty neverInjectSelector'],
    ['an unknown policy: nobody', decision, 'an unknown policy, even with a label'],
    ['hostNetwork comes first', decision, 'host network'],
    ['the four namespaces come first', decision, 'a system namespace'],
    ['namespace of the pod, or of the request', review, 'the namespace is taken from the pod'],
  ],
  '1.3': [
    [
      'names, labels, service, path, side effects',
      chart,
      'select pods with the tag for each revision tag, call its revision',
    ],
    ['reinvocationPolicy', chart, 'select pods with the tag for each revision tag, call its revision'],
    ['a matchCondition leaves out our own pods (istio#26380, #21147)', chart, 'creates pods of the control plane'],
    [
      'the CA bundle of entries that call us',
      bundles,
      'WebhookBundles writes the root to webhooks that call this control plane',
    ],
    [
      'configurations of other revisions',
      bundles,
      'WebhookBundles does not write a mutating configuration of another revision',
    ],
    ['certificate per handshake', server, 'a renewed certificate is presented to the next connection'],
    ['TLS 1.2 or later', server, 'a TLS 1.1 client is rejected'],
    ['/ready', server, 'a review is rejected with the reason if there are no settings'],
  ],
  '1.4': [
    ['the ConfigMap is followed', settings, 'injector settings consist of both keys'],
    ['absent: errors with its name', server, 'a review is rejected with the reason if there are no settings'],
    ['invalid content', settings, 'invalid injector settings keep the last valid content'],
    ['the key template is ignored', 'src/injection/settings.decode.test.ts', 'a template is YAML or a Go template'],
  ],
  '1.5': [
    ['content type exactly application/json', server, 'another content type', 'no content type'],
    ['an empty body: 400', server, 'an empty body'],
    [
      'no AdmissionReview: an empty uid',
      server,
      'a body that is not JSON, nested too deeply or not a review is rejected',
    ],
    ['the failure names pod, annotation and value', review, 'a rejection names pod, annotation and value'],
    ['outcomes are counted apart', server, 'a review is rejected with the reason if there are no settings'],
    ['any body has a review', review, 'a review never throws for '],
    ['managedFields', review, 'a patch contains no managed fields (§1.5)'],
    [
      'keys of the URL',
      review,
      'environmentOfPath returns for the path %s the environment variables %j',
      '/inject/cluster/west/net/n1',
    ],
    ['an odd last key is ignored', review, '/inject/zone/a--slash--b/odd'],
  ],
  '2.1': [
    [
      'DeploymentMeta, TypeMeta',
      pods,
      'DeploymentMeta is derived for a pod of %s (§2.1)',
      'a Job of a CronJob',
      'no controller',
    ],
    ['ObjectMeta, Spec: after stripping', pods, 'changed settings apply to an injected pod'],
    ['ProxyConfig: mesh, objects, annotation', parts, 'ProxyConfig is merged from the mesh'],
    ['ProxyImage, ProxyInitImage', parts, 'ProxyImage is built from %s (§2.1)', 'ProxyImage has the ProxyConfig'],
    ['a tag that ends in a type has it replaced', parts, 'a variant of the tag'],
    ['type default: no suffix', parts, 'the variant default'],
    ['a value with "/" is taken whole', parts, 'a value with a complete reference', 'an annotation with a complete'],
    ['NativeSidecars', inject, 'NativeSidecars are used if a setting enables them or'],
    ['NativeSidecars auto', openshift, 'NativeSidecars is $3 for $0 (§2.1)'],
    ['ProxyUID of OpenShift', openshift, 'the ProxyUID of a namespace with $0 is $2 (§2.1)'],
    ['ProxyUID of the proxy', parts, 'ProxyUID of the namespace is the proxy'],
  ],
  '2.2': [
    [
      'functions beside those of sprig',
      goTemplates,
      'templates can use %s',
      'annotation',
      'excludeInboundPort',
      'appendMultusNetwork',
    ],
    ["indent: not the first line, replaces sprig's", goTemplates, 'indent'],
    ['contains(needle, haystack)', goTemplates, 'contains'],
    ['protoToJSON drops defaults', goTemplates, 'protoToJSON'],
    ['functions of H', goTemplates, 'omit, omitNil', 'strdict, mergeMaps', 'toJsonMap', 'otelResourceAttributes'],
    ["env, and sprig's env and expandenv", goTemplates, 'env', 'the sprig function %s'],
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
    ['canonical name', parts, 'the canonical name label has at most 63 characters'],
    ['readiness and startup probe', parts, 'probes of the proxy allow 10 minutes to start'],
    ['env', parts, 'the environment contains limits and the node'],
    ['workload name by label', parts, 'the workload name is taken from the label'],
    ['token volume always', parts, 'the token is always projected for audience istio-ca'],
    ['istio-ca-crl', parts, 'the token is always projected for audience istio-ca'],
    ['init security with CNI', parts, 'the validation runs with CNI as the namespace'],
    ['inbound port list annotation with CNI', parts, 'the validation runs with CNI as the namespace'],
    ['provider multus', parts, 'the Multus plugin is added once to the pod'],
    ['NONE mode', parts, 'a pod in mode NONE has no init container except a native proxy (§3.1)'],
    ['MUST NOT: fsGroup of a container, restartPolicy of init', parts, 'a container never has an fsGroup'],
    ['annotations with quantities', parts, 'quantities in annotations must not contain control characters (§3.1)'],
  ],
  '3.2': [
    [
      'only annotations count for resources',
      parts,
      'an annotation for resources replaces all resource values of the proxy and',
    ],
    ['a request above its limit', inject, 'a pod is rejected if a container has the name of a sidecar init container'],
    ['default values', parts, 'the defaults of the chart apply (§3.2)'],
    ['CA_ADDR', parts, 'CA_ADDR is the configured value'],
    ['ISTIO_META_OWNER', parts, 'ISTIO_META_OWNER contains the namespace default if the namespace is'],
    ['mesh id', parts, 'the mesh ID is the configured value'],
    ['ISTIO_META_POD_PORTS, ISTIO_META_APP_CONTAINERS', parts, 'ports and names are those of the application'],
    [
      'proxyMetadata on proxy and init',
      parts,
      'proxyMetadata is added to the environment of the proxy and init container',
    ],
    ['bootstrap override', parts, 'a bootstrap override'],
    ['userVolume, userVolumeMount', parts, 'volumes and mounts from annotations are added with their names (§3.2)'],
    [
      'no DNS policy, aliases or grace period',
      parts,
      'fields of the pod are unchanged if the sidecar does not need them (§3.2)',
    ],
    ['imagePullSecrets', parts, 'pull secrets from the values are merged by name with the pod'],
    ['native: order and preStop', inject, 'a native sidecar runs before the pod'],
    ['not native: order and postStart', inject, 'a sidecar that is not native is the last container'],
    ['validation first, istio-init last', parts, 'the validation is the first init container'],
    ['lifecycle of the values', parts, 'hooks from the values replace those of all proxies'],
    ['POST /drain', 'src/agent/status/status-server.test.ts', '/drain requires POST'],
    ['TPROXY', inject, 'redirection with TPROXY runs the proxy as root with NET_ADMIN'],
    ['capNetBindService', parts, 'a proxy that binds privileged ports runs as root with only this capability'],
  ],
  '3.3': [
    ['args, no init, no tlsMode, sysctl', inject, 'a gateway has the role router and no redirection'],
    [
      'security context of the values, interception mode, volumes',
      parts,
      'a gateway has the security context from the values',
    ],
    ['image auto', inject, 'the pull policy that the API server sets for image auto does not apply to'],
    ['grpc-agent', parts, 'the template grpc-agent runs the agent without Envoy'],
    ['kube-gateway', 'src/injection/gateway/gateway-deployment.test.ts', 'a Gateway'],
  ],
  '3.4': [
    ['1: all errors of annotations in one message', parts, 'invalid annotations are all listed in one message'],
    ['2: strip, reinsert overrides', pods, 'changed settings apply to an injected pod'],
    ['3: templates in order', inject, 'templates from the mesh and built-in ones are merged in the order of the'],
    [
      '4: overlapping containers of the user on top',
      inject,
      'fields of a user-written container istio-proxy override those',
    ],
    ['5: environment of the URL', parts, 'variables from the URL replace those of the proxy (§3.4)'],
    ['6: Prometheus merge', pods, 'application metrics are merged for any spelling of the annotations unless'],
    ['reserved ports', pods, 'metrics on the sidecar'],
    ['8: probes', inject, 'probes are redirected to the agent'],
    ['9: network label, status, annotations', inject, 'labels, annotations and environment name the workload'],
    ['9: injectedAnnotations', parts, 'annotations from the settings are added unless the pod already has them'],
    ['10: order', inject, 'a native sidecar runs before the pod'],
    ['11: JSON patch from the original', review, 'a review of %s gets a response with the same version and uid'],
    [
      'names of the status, revision',
      parts,
      'the status annotation lists the revision and the containers that templates',
    ],
  ],
  '4.1': [
    [
      'containers and init containers, paths',
      pods,
      'probes and hooks of containers and init containers have separate paths',
    ],
    ['exec and sleep untouched', inject, 'a probe is unchanged if it uses an undeclared port'],
    [
      'a named port that is not declared',
      pods,
      'a probe of a named port is unchanged if the container does not declare the',
    ],
    ['one port for the test and the rewriting', pods, 'probes are redirected to the port in the annotation'],
    ['scheme and host', pods, 'a probe has the agent'],
    ['a probe on the status port by name', pods, 'a probe that names the status port is unchanged (§4.1)'],
    [
      're-injection merges (istio#56102)',
      pods,
      'injecting again also redirects the probes of containers that were added',
    ],
    [
      'containers of later webhooks (istio#36353)',
      pods,
      'injecting again also redirects the probes of containers that were added',
    ],
    ['probes under STRICT', interception, 'passes probes of all kinds to the application under STRICT'],
  ],
  '4.2': [
    [
      'a user-written istio-proxy moves to initContainers',
      pods,
      'a user-written istio-proxy becomes a native sidecar with its own probes',
    ],
    ['a pod of a proxy alone', inject, 'a pod that contains only a proxy gets no native sidecar'],
  ],
  '4.3': [
    [
      'field by field, env by name, args wholly, image auto',
      pods,
      'arguments of a user-written istio-proxy replace the generated ones',
    ],
    ['probes and hooks as a whole', inject, 'a probe, hook or variable of a user-written istio-proxy completely'],
    ['saved only at the first injection', pods, 'user-written fields are saved only at the first injection (§4.3)'],
    ['runAsUser', pods, 'redirection and its validation exclude the user of a user-written'],
    ['TPROXY forces uid 0 (istio#51012)', pods, 'a user-written istio-proxy always runs as root with TPROXY (§4.3'],
    ['istio-init', pods, 'fields of a user-written istio-init override those of the template (§4.3)'],
    [
      "OpenShift: the proxy's uid equals the application's (istio#52614)",
      pods,
      'a user of istio-proxy is ignored if an application container runs as the',
    ],
  ],
  '4.4': [
    ['lists with a merge key', merge, 'items of a list with a merge key are merged'],
    ['args, command, tolerations', merge, 'items of a list with a merge key are merged'],
    ['empty lists, null, $patch', merge, 'an empty list with a merge key changes nothing'],
    ["equal to Kubernetes' own", mergeOracle, 'a random patch gives the same result as in Kubernetes'],
    ['a volume of an equal name', inject, 'a pod is rejected if a volume has a sidecar name'],
  ],
  '4.5': [
    [
      'any pod, template list, native or not, revision, status port',
      inject,
      'injecting a pod twice has the same result as',
    ],
    ['prometheus annotations', pods, 'metrics annotations from an earlier injector are removed only if they name'],
    ['what another webhook added stays (istio#54562)', pods, 'changed settings apply to an injected pod'],
  ],
  '4.6': [
    [
      'kinds',
      manifests,
      'the pod template of a %s is injected (§4.6)',
      'a list, a CronJob, JSON and a pod are injected',
    ],
    ['unregistered kinds byte for byte', manifests, 'bytes outside of pod templates are unchanged'],
    ['unchanged, and a line on stderr', command, 'pilot-discovery inject prints a note for a pod that is not injected'],
    [
      'already injected',
      manifests,
      'a pod that is already injected is injected again with the current settings',
      'injecting injected manifests changes nothing',
    ],
  ],
  '4.7': [
    [
      'pods not created: preflight',
      check,
      'reports pods without a sidecar, old sidecars, wrong labels and an unreachable webhook',
    ],
    ['control plane cannot start again', chart, 'creates pods of the control plane'],
    ['not injected, silently', review, 'a pod that is skipped is allowed without a patch'],
    ['fight over failurePolicy, caBundle', chart, 'keeps the CA bundles and the failure policy'],
    ['x509 after CA change', bundles, 'WebhookBundles does not write a configuration that has the current root'],
    ['1337 used by the app', inject, 'runs as the user of the sidecar', 'runs the proxy image with the user'],
  ],
};

export const injectionRows: readonly InjectionRow[] = Object.entries(rows).flatMap(([section, list]) =>
  list.map(([row, file, ...tests]) => ({ section, row, file, tests })),
);
