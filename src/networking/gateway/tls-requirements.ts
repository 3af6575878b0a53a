/** A server is stricter if it accepts fewer connections. */
import { TlsParameters_TlsProtocol as TlsVersion } from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { clientAuthority } from '../../model/kinds/destinations/client-authority.ts';
import type { ServerTlsMode, ServerTlsSettings, TlsProtocol } from '../../model/kinds/gateway/gateway.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { tlsParameters, workloadServerParameters } from '../messages/tls-parameters.ts';

export type MeshTls = Pick<MeshConfig, 'tlsDefaults' | 'meshMTLS'>;

/** Envoy's default cipher suites for servers (`TlsParameters.cipher_suites` in Envoy's API). */
const envoyCipherSuites: readonly string[] = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
];

const protocolNames: readonly TlsProtocol[] = ['TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'];

function versionName(version: TlsVersion): TlsProtocol {
  return protocolNames[version]!;
}

/** Client certificates are not requested (0), verified if presented (1), or required (2). */
const certificateDemand: Readonly<Record<ServerTlsMode, 0 | 1 | 2>> = {
  PASSTHROUGH: 0,
  AUTO_PASSTHROUGH: 0,
  SIMPLE: 0,
  OPTIONAL_MUTUAL: 1,
  MUTUAL: 2,
  ISTIO_MUTUAL: 2,
};

/** An absent list accepts everything. */
interface Requirements {
  readonly mode: ServerTlsMode;
  readonly certificates: 0 | 1 | 2;
  readonly authority: string;
  readonly subjectAltNames?: readonly string[] | undefined;
  readonly spki?: readonly string[] | undefined;
  readonly hashes?: readonly string[] | undefined;
  readonly revocationList?: string | undefined;
  readonly min: TlsVersion;
  readonly max: TlsVersion;
  readonly cipherSuites: readonly string[];
  readonly redirect: boolean;
}

export class TlsRequirements {
  readonly #requirementsFor: (settings: ServerTlsSettings) => Requirements;

  constructor(mesh: MeshTls) {
    this.#requirementsFor = memoizeByObject((settings: ServerTlsSettings) => requirementsOf(settings, mesh));
  }

  demandOf({ mode }: ServerTlsSettings): number {
    return certificateDemand[mode];
  }

  /** Fields in which the first settings accept connections that the others reject, such as `mode SIMPLE instead of MUTUAL`. */
  weakerFields(firstSettings: ServerTlsSettings, otherSettings: ServerTlsSettings): readonly string[] {
    const [a, b] = [this.#requirementsFor(firstSettings), this.#requirementsFor(otherSettings)];
    const fields: string[] = [];
    const addDifference = (field: string, actual: unknown, requiredValue: unknown): void => {
      fields.push(`${field} ${textOf(actual)} instead of ${textOf(requiredValue)}`);
    };
    if (a.certificates < b.certificates) addDifference('mode', a.mode, b.mode);
    else if (b.certificates > 0) {
      if (a.authority !== b.authority) addDifference('client authority', a.authority, b.authority);
      if (!isSubset(a.subjectAltNames, b.subjectAltNames))
        addDifference('subjectAltNames', a.subjectAltNames, b.subjectAltNames);
      if (!isDigestSubset(a, b)) addDifference('certificate digests', digestsOf(a), digestsOf(b));
      if (b.revocationList !== undefined && a.revocationList !== b.revocationList)
        addDifference('caCrl', a.revocationList, b.revocationList);
    }
    if (a.min < b.min) addDifference('minProtocolVersion', versionName(a.min), versionName(b.min));
    if (a.max > b.max) addDifference('maxProtocolVersion', versionName(a.max), versionName(b.max));
    if (hasCipherSuites(a) && hasCipherSuites(b) && !isSubset(a.cipherSuites, b.cipherSuites))
      addDifference('cipherSuites', a.cipherSuites, b.cipherSuites);
    if (b.redirect && !a.redirect) addDifference('httpsRedirect', false, true);
    return fields;
  }

  /**
   * The result accepts only connections that both settings accept. Fields that cannot be combined (CA, revocation list) are those of the first
   * settings; {@link weakerFields} reports them.
   *
   * @returns settings, or why they cannot be combined
   */
  combine(firstSettings: ServerTlsSettings, otherSettings: ServerTlsSettings): ServerTlsSettings | string {
    const [a, b] = [this.#requirementsFor(firstSettings), this.#requirementsFor(otherSettings)];
    let settings = firstSettings;
    const max = a.max > b.max ? b.max : a.max;
    let min = a.min < b.min ? b.min : a.min;
    if (hasCipherSuites({ min })) {
      const suites = intersection(a.cipherSuites, b.cipherSuites)!;
      if (suites.length === 0) min = TlsVersion.TLSv1_3;
      else if (suites.length < a.cipherSuites.length) settings = { ...settings, cipherSuites: suites };
    }
    if (min > max) return 'no TLS version and cipher suite satisfies both';
    if (min > a.min) settings = { ...settings, minProtocolVersion: versionName(min) };
    if (max < a.max) settings = { ...settings, maxProtocolVersion: versionName(max) };
    if (a.certificates > 0 && b.certificates > 0) {
      const names = intersection(a.subjectAltNames, b.subjectAltNames);
      const [spki, hashes] = [intersection(a.spki, b.spki), intersection(a.hashes, b.hashes)];
      if (names?.length === 0) return 'no name is in the subjectAltNames of both';
      if (!isDigestSubset({ spki, hashes }, b) || !isDigestSubset({ spki, hashes }, a))
        return 'no certificate digest is accepted by both';
      settings = {
        ...settings,
        ...(names && { subjectAltNames: names }),
        ...(spki && { verifyCertificateSpki: spki }),
        ...(hashes && { verifyCertificateHash: hashes }),
      };
      if (a.authority === b.authority && a.revocationList === undefined && b.revocationList !== undefined)
        settings = { ...settings, caCrl: b.revocationList };
    }
    return b.redirect && !a.redirect ? { ...settings, httpsRedirect: true } : settings;
  }
}

function requirementsOf(settings: ServerTlsSettings, mesh: MeshTls): Requirements {
  const { mode } = settings;
  const isOfMesh = mode === 'ISTIO_MUTUAL';
  const parameters = isOfMesh
    ? workloadServerParameters(mesh.meshMTLS, settings)
    : tlsParameters(mesh.tlsDefaults, settings);
  const authority = clientAuthority(settings);
  return {
    mode,
    certificates: certificateDemand[mode],
    authority: isOfMesh
      ? 'of the mesh'
      : authority?.kind === 'credential'
        ? `credential ${authority.name}`
        : (authority?.path ?? 'none'),
    subjectAltNames: nonEmptyList(settings.subjectAltNames),
    spki: nonEmptyList(settings.verifyCertificateSpki),
    hashes: nonEmptyList(settings.verifyCertificateHash),
    revocationList: settings.caCrl || undefined,
    min: parameters.tlsMinimumProtocolVersion!,
    max: parameters.tlsMaximumProtocolVersion!,
    cipherSuites: nonEmptyList(parameters.cipherSuites) ?? envoyCipherSuites,
    redirect: settings.httpsRedirect === true,
  };
}

function nonEmptyList(list: readonly string[] | undefined): readonly string[] | undefined {
  return list?.length ? list : undefined;
}

/** Returns false for TLS 1.3, whose cipher suites are fixed. */
function hasCipherSuites({ min }: Pick<Requirements, 'min'>): boolean {
  return min < TlsVersion.TLSv1_3;
}

function isSubset(candidates: readonly string[] | undefined, allowedValues: readonly string[] | undefined): boolean {
  if (allowedValues === undefined) return true;
  const acceptedTexts = new Set(allowedValues);
  return candidates?.every((text) => acceptedTexts.has(text)) ?? false;
}

function intersection(firstList: readonly string[] | undefined, secondList: readonly string[] | undefined) {
  if (firstList === undefined || secondList === undefined) return firstList ?? secondList;
  const acceptedTexts = new Set(secondList);
  return firstList.filter((text) => acceptedTexts.has(text));
}

/** Compares both lists, because Envoy accepts certificates in either, and all certificates if both are empty. */
function isDigestSubset(a: Pick<Requirements, 'spki' | 'hashes'>, b: Pick<Requirements, 'spki' | 'hashes'>) {
  const acceptedTexts = digestsOf(b);
  if (acceptedTexts === undefined) return true;
  const acceptedDigests = digestsOf(a);
  return acceptedDigests !== undefined && acceptedDigests.length > 0 && isSubset(acceptedDigests, acceptedTexts);
}

function digestsOf({ spki, hashes }: Pick<Requirements, 'spki' | 'hashes'>): readonly string[] | undefined {
  if (spki === undefined && hashes === undefined) return undefined;
  return [
    ...(spki ?? []).map((certificateHash) => `spki ${certificateHash}`),
    ...(hashes ?? []).map((certificateHash) => `hash ${certificateHash}`),
  ];
}

const maxListedItems = 3;

function textOf(value: unknown): string {
  if (value === undefined) return 'not set';
  if (!Array.isArray(value)) return String(value);
  const omittedCount = value.length - maxListedItems;
  return `[${value.slice(0, maxListedItems).join(', ')}${omittedCount > 0 ? ` and ${omittedCount} more` : ''}]`;
}
