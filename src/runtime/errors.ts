import { agentTable } from './error-codes/agent.ts';
import type { CertificateCode } from './error-codes/certificates.ts';
import { debuggerTable } from './error-codes/debugger.ts';
import { discoveryTable } from './error-codes/discovery.ts';
import type { ErrorTable } from './error-codes/error-table.ts';
import { programTable } from './error-codes/programs.ts';
import { visibleText } from './visible-text.ts';

/** Errors of programs, each with a stable code (docs/errors.md). Any other error is a bug and prints its stack. */
export const errorTable = {
  ...programTable,
  ...agentTable,
  ...debuggerTable,
  ...discoveryTable,
} as const satisfies ErrorTable;

export type ErrorCode = keyof typeof errorTable;

/** Warnings about valid configuration that has no effect or an unexpected one. docs/config-analysis.md has a row for each. */
export const warningTable = {
  HOST_NOT_FOUND: 'no service has the host',
  PORT_NOT_FOUND: 'the service has no such port',
  PORT_NOT_CHOSEN: 'the destination service has several ports and the route chooses none',
  SUBSET_NOT_FOUND: 'no DestinationRule of the host defines the subset',
  SUBSET_WITHOUT_ENDPOINTS: 'no endpoint of the service has the labels of the subset',
  GATEWAY_NOT_FOUND: 'there is no such Gateway',
  HOST_NOT_IN_GATEWAY: 'no server of the Gateway serves the host',
  DELEGATE_NOT_FOUND: 'there is no such delegate VirtualService',
  DELEGATE_CONFLICT: 'a match of the delegate lies outside the matches of its root',
  CREDENTIAL_NOT_FOUND: 'there is no such Secret or ConfigMap, or no grant for it',
  SERVICE_ACCOUNT_NOT_FOUND: 'no workload runs as the service account',
  SOURCE_NOT_FOUND: 'no client is in the namespace, or has the labels, of a match',
  PROVIDER_NOT_FOUND: 'the mesh configuration has no such extension provider',
  WORKLOAD_NOT_FOUND: 'no workload has the labels of the selector',
  SELECTOR_CONFLICT: 'an older object selects the same workloads',
  MATCH_SHADOWED: 'an earlier route takes all requests of the match',
  HOST_CONFLICT: 'an older object has the same host',
  SUBSET_CONFLICT: 'an older DestinationRule has the same subset',
  TRAFFIC_POLICY_LOST: 'an older DestinationRule of the host has the traffic policy that applies',
  RULE_NOT_APPLIED: 'the rule applies to no client',
  PORT_NAME_CONFLICT: 'ServiceEntries of one host use a port name for several ports',
  PORT_PROTOCOL_CONFLICT: 'ServiceEntries of one host give a port several protocols',
  ADDRESS_CONFLICT: 'another service has the same address and port',
  SERVICE_PORT_IN_POLICY: 'the object names a port of the Service and needs the port of the workload',
  RULE_NEEDS_HTTP: 'a rule about requests selects workloads whose ports are TCP',
  MTLS_CONFLICT: 'clients connect in a way that the workloads reject',
  EJECTION_LIMITS_FAILOVER: 'too few endpoints can be ejected for a failover',
  CERTIFICATE_SHARED: 'servers with separate routes share a certificate',
  PATCH_NOT_APPLIED: 'a patch of an EnvoyFilter matches nothing',
  HOST_NAME_ENDPOINT: 'an endpoint is a host name where an IP address is needed',
  REFERENCE_NOT_GRANTED: 'no ReferenceGrant allows the reference',
  TARGET_NOT_FOUND: 'there is no such object that the policy can target',
  ROUTE_NOT_APPLIED: 'no port of the hosts has the protocol of the routes',
  PROVIDER_UNREACHABLE: 'no service has the host and port of the extension provider',
  CLASS_NOT_FOUND: 'there is no such GatewayClass',
  OPTION_UNKNOWN: 'an option or a value of it is not known',
  NOT_PROGRAMMED: 'a part of a Gateway API object has no effect',
  NETWORK_WITHOUT_GATEWAY: 'no gateway of the network is known',
  GRPC_NOT_SUPPORTED: 'a connected gRPC program without a proxy ignores a part of the object',
} as const;

export type WarningCode = keyof typeof warningTable;

export function conditionReasonOf(code: WarningCode): string {
  return code.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export interface ErrorFields {
  readonly code?: string;
  /** Field, flag, variable or file, such as `spec.http[0].timeout` or `--drainTime`. */
  readonly path?: string;
  /** 1-based, in the file. */
  readonly line?: number;
  readonly column?: number;
  readonly expected?: string;
  readonly got?: string;
}

/** The caller adds the location, unless the text contains it. */
export class CodedError extends Error {
  override readonly name: string = 'CodedError';
  readonly code: ErrorCode | CertificateCode;
  readonly fields: ErrorFields;

  constructor(
    code: ErrorCode | CertificateCode,
    text: string,
    options: { cause?: unknown; fields?: ErrorFields } = {},
  ) {
    super(text, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.fields = fieldsIn(options.fields ?? {});
  }
}

/** An error that a user can fix. `message` contains the problem, its location and reason; `hint` the action. */
export class ChartpilotError extends CodedError {
  override readonly name = 'ChartpilotError';
  declare readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: readonly ErrorFields[];

  constructor(
    code: ErrorCode,
    detail: string,
    options: { hint?: string; cause?: unknown; fields?: ErrorFields | readonly ErrorFields[] } = {},
  ) {
    const details = [options.fields ?? []].flat().map(fieldsIn);
    super(code, `${errorTable[code].meaning}: ${detail}`, {
      cause: options.cause,
      ...(details[0] && { fields: details[0] }),
    });
    this.hint = options.hint;
    this.details = details;
  }
}

function fieldsIn({ code, path, line, column, expected, got }: ErrorFields): ErrorFields {
  return {
    ...(code !== undefined && { code }),
    ...(path !== undefined && { path }),
    ...(line !== undefined && { line }),
    ...(column !== undefined && { column }),
    ...(expected !== undefined && { expected }),
    ...(got !== undefined && { got }),
  };
}

/** The message becomes a reason (of a log line, gRPC status, condition or Event) and therefore ends with the code. */
export function reasonError(code: ErrorCode, text: string, options: { cause?: unknown } = {}): CodedError {
  return new CodedError(code, appendCode(text, code), options);
}

/** A text that already ends with a code is unchanged. */
export function appendCode(text: string, code: ErrorCode): string {
  return / \[[A-Z][A-Z_]+\]$/.test(text) ? text : `${text} [${code}]`;
}

export function codeOf(error: unknown, causes = 0): CodedError['code'] | undefined {
  if (error instanceof CodedError) return error.code;
  return error instanceof Error && causes < maxCauses ? codeOf(error.cause, causes + 1) : undefined;
}

/** One line, with code and hint if the error has any. */
export function errorReasonOf(error: unknown): string {
  return error instanceof ChartpilotError ? explainInOneLine(error) : messageOf(error);
}

/**
 * One paragraph with the code for an error that a user can fix, the stack for a bug. Control characters are escaped.
 */
export function explainError(error: unknown): string {
  return visibleText(errorTextOf(error));
}

function errorTextOf(error: unknown): string {
  if (error instanceof ChartpilotError) {
    const text = `${error.message} [${error.code}]`;
    return error.hint === undefined ? text : `${text}\n  → ${error.hint}`;
  }
  const network = networkErrorIn(error);
  if (network !== undefined) return withCause(messageOf(error), messageOf(network));
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The peer is responsible for a failed connection, so a stack has no value. */
const networkCodes: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN'],
]);
const maxCauses = 8;

const withCause = (message: string, cause: string): string =>
  message.includes(cause) ? message : `${message}: ${cause}`;

function networkErrorIn(error: unknown, causes = 0): Error | undefined {
  if (!(error instanceof Error) || causes > maxCauses) return undefined;
  return networkCodes.has((error as { code?: unknown }).code) ? error : networkErrorIn(error.cause, causes + 1);
}

/** The message of any thrown value, in one line, with a message for each address if several addresses failed. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof AggregateError) || error.message !== '') return error.message;
  return error.errors.map((cause) => messageOf(cause)).join('; ');
}

const fileErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENOTDIR: 'not a directory',
};

/** Omits the system call and its error number, for a context that names the path of the file. */
export function fileErrorOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return Object.hasOwn(fileErrors, code) ? fileErrors[code]! : messageOf(error);
}

export function isSystemError(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Like {@link explainError} in one line with the hint, for contexts that keep only a message. */
export function explainInOneLine(error: unknown): string {
  return explainError(error).replaceAll(/\s*\n\s*/g, ' ');
}

/** Moves the hint of an error into its message, because a statechart keeps only the message. */
export async function withHintInMessage<A>(task: () => Promise<A>): Promise<A> {
  try {
    return await task();
  } catch (error) {
    if (!(error instanceof ChartpilotError)) throw error;
    throw new Error(explainInOneLine(error), { cause: error });
  }
}
