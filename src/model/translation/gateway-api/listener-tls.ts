import type { Config } from '../../config/config.ts';
import type { ServerTlsSettings } from '../../kinds/gateway/gateway.ts';
import { supportedCipherSuites } from '../../kinds/gateway/server-tls.decode.ts';
import type { KubernetesGateway, Listener, ListenerTls } from '../../kinds/gateway-api/kubernetes-gateway.ts';
import type { TranslationContext, TranslationWarning } from './translation-context.ts';

export interface ListenerRefusal {
  /** Reason of the Gateway API's condition ResolvedRefs; `Invalid` if the cause is not a reference. */
  readonly reason: 'InvalidCertificateRef' | 'RefNotPermitted' | 'Invalid';
  readonly message: string;
}

type RefusedTls = ListenerRefusal & { readonly field: string; readonly warning?: TranslationWarning };

const unknownOption: TranslationWarning = { code: 'OPTION_UNKNOWN' };

const prefix = 'gateway.istio.io/';
const terminateModeOption = `${prefix}tls-terminate-mode`;
const terminateModes = ['SIMPLE', 'MUTUAL', 'OPTIONAL_MUTUAL', 'ISTIO_MUTUAL'] as const;
/** Comma-separated cipher suites for TLS 1.2 and earlier. */
const cipherSuitesOption = `${prefix}tls-cipher-suites`;
/** The value `auto-passthrough` routes connections from other networks by SNI without termination. */
const protocolOption = `${prefix}listener-protocol`;
const knownOptions: readonly string[] = [terminateModeOption, cipherSuitesOption, protocolOption];

const defaultNetworkPort = 15_443;

function rejectTls(
  field: string,
  message: string,
  reason: ListenerRefusal['reason'] = 'Invalid',
  warning?: TranslationWarning,
): RefusedTls {
  return { field, reason, message, ...(warning && { warning }) };
}

export function tlsOf(
  gateway: Config<KubernetesGateway>,
  listener: Listener,
  context: TranslationContext,
): ServerTlsSettings | RefusedTls | undefined {
  const { protocol, tls } = listener;
  if (protocol === 'HTTP' || protocol === 'TCP') return undefined;
  if (tls === undefined) return rejectTls('', `tls is required with protocol ${protocol}`);
  const unknownKey = Object.keys(tls.options).find((key) => key.startsWith(prefix) && !knownOptions.includes(key));
  // Rejects unknown options, because they may restrict clients.
  if (unknownKey !== undefined)
    return rejectTls(
      '.tls.options',
      `unknown option ${unknownKey}, must be one of ${knownOptions.join(', ')}`,
      'Invalid',
      unknownOption,
    );
  if (tls.mode === 'Passthrough') {
    return { mode: isAutoPassthrough(gateway, listener) ? 'AUTO_PASSTHROUGH' : 'PASSTHROUGH' };
  }
  // A listener that requires client certificates must not serve without verifying them.
  if (tls.frontendValidation !== undefined) {
    const message = `is not supported: use option ${terminateModeOption} to require client certificates`;
    return rejectTls('.tls.frontendValidation', message);
  }
  if ((gateway.spec.tls as { frontend?: unknown } | undefined)?.frontend !== undefined) {
    return rejectTls('', 'spec.tls.frontend of the Gateway is not supported');
  }
  const mode = terminateModes.find((acceptedMode) => acceptedMode === (tls.options[terminateModeOption] ?? 'SIMPLE'));
  if (mode === undefined) {
    const actualMode = tls.options[terminateModeOption];
    return rejectTls(
      '.tls.options',
      `${terminateModeOption} must be one of ${terminateModes.join(', ')}, got ${actualMode}`,
      'Invalid',
      unknownOption,
    );
  }
  const suites = cipherSuitesOf(tls);
  if ('reason' in suites) return suites;
  const { unknownSuites, cipherSuites } = suites;
  if (unknownSuites.length > 0) {
    const path = `listeners[${gateway.spec.listeners.indexOf(listener)}].tls.options`;
    context.warn(gateway, path, `unknown cipher suites are ignored: ${unknownSuites.join(', ')}`, unknownOption);
  }
  const restriction = cipherSuites === undefined ? {} : { cipherSuites };
  if (mode === 'ISTIO_MUTUAL') return { mode, ...restriction };
  const credentials = credentialsOf(gateway, tls, context);
  return 'reason' in credentials ? credentials : { mode, ...credentials, ...restriction };
}

/** As in Istio, enabled by the option, or by the Gateway's network label on the network's port. */
function isAutoPassthrough({ labels }: Config, { port, tls }: Listener): boolean {
  if (tls?.options[protocolOption] === 'auto-passthrough') return true;
  if (labels['topology.istio.io/network'] === undefined) return false;
  return String(port) === (labels['networking.istio.io/gatewayPort'] ?? String(defaultNetworkPort));
}

interface CipherSuites {
  readonly cipherSuites?: readonly string[];
  readonly unknownSuites: readonly string[];
}

function cipherSuitesOf({ options }: ListenerTls): CipherSuites | RefusedTls {
  const option = options[cipherSuitesOption];
  if (option === undefined) return { unknownSuites: [] };
  const suiteNames = option.split(',').map((suite) => suite.trim());
  const cipherSuites = suiteNames.filter((suite) => supportedCipherSuites.has(suite));
  const unknownSuites = suiteNames.filter((suite) => !supportedCipherSuites.has(suite));
  // An empty list would mean the defaults.
  if (cipherSuites.length === 0) {
    return rejectTls(
      '.tls.options',
      `${cipherSuitesOption} must have at least one known cipher suite, got ${JSON.stringify(option)}`,
      'Invalid',
      unknownOption,
    );
  }
  return { cipherSuites: [...new Set(cipherSuites)], unknownSuites };
}

function credentialsOf(
  gateway: Config<KubernetesGateway>,
  { certificateRefs }: ListenerTls,
  context: TranslationContext,
): Pick<ServerTlsSettings, 'credentialName' | 'credentialNames'> | RefusedTls {
  const invalidReference = 'InvalidCertificateRef';
  const names: string[] = [];
  for (const [index, ref] of certificateRefs.entries()) {
    const field = `.tls.certificateRefs[${index}]`;
    const { group, kind, name, namespace = gateway.namespace } = ref;
    if (group !== '' || kind !== 'Secret')
      return rejectTls(field, `must be a Secret, got ${kind} ${name}`, invalidReference);
    if (!context.isGranted({ kind: 'Gateway', namespace: gateway.namespace }, { group, kind, name, namespace })) {
      const message = `no ReferenceGrant in namespace ${namespace} allows Gateways of namespace ${gateway.namespace} to refer to Secret ${name}`;
      const warning: TranslationWarning = {
        code: 'REFERENCE_NOT_GRANTED',
        absent: { kind: 'ReferenceGrant', namespace },
      };
      return rejectTls(field, message, 'RefNotPermitted', warning);
    }
    names.push(namespace === gateway.namespace ? `kubernetes://${name}` : `kubernetes://${namespace}/${name}`);
  }
  if (names.length === 0) return rejectTls('.tls', 'certificateRefs must have a Secret', invalidReference);
  return names.length === 1 ? { credentialName: names[0]! } : { credentialNames: names };
}
