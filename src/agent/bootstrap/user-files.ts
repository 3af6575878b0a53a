/** A user's file that Envoy rejects fails at each attempt, so that retries are useless. */
import { existsSync, readFileSync } from 'node:fs';
import { parseYamlDocument, type YamlPosition } from '../../model/yaml/yaml-document.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import type { ValidationResult } from '../envoy/envoy-validation.ts';
import type { ProxyOptions } from '../options/options.ts';

export interface UserFile {
  readonly setting: string;
  readonly path: string;
  /** Envoy reads the rendered text, whose positions differ from those of the file. */
  readonly isTemplate?: boolean;
}

export interface UserFiles {
  readonly bootstrap?: UserFile;
  readonly override?: UserFile;
}

export function userFilesOf({ config, configOverride, env, template }: ProxyOptions): UserFiles {
  const { customConfigFile } = config;
  const override = configOverride === '' ? undefined : env.ISTIO_BOOTSTRAP_OVERRIDE;
  return {
    ...(customConfigFile
      ? { bootstrap: { setting: 'customConfigFile', path: customConfigFile } }
      : template && { bootstrap: { setting: 'bootstrap template', path: template.path, isTemplate: true } }),
    ...(override && { override: { setting: 'ISTIO_BOOTSTRAP_OVERRIDE', path: override } }),
  };
}

/**
 * Accepts a rejection that names a missing file: certificates may be written later, and the start is retried.
 * @throws ChartpilotError BOOTSTRAP_INVALID with the user's file, and with field and line if Envoy names a field
 */
export async function requireUserFiles(
  { bootstrap, override }: UserFiles,
  validate: (options: { withOverride: boolean }) => Promise<ValidationResult>,
): Promise<void> {
  const base = await validate({ withOverride: false });
  // A rejected generated bootstrap may lack files or patches that arrive later.
  if (base.is !== 'taken') return bootstrap && requireAcceptedByEnvoy(bootstrap, base);
  if (override) requireAcceptedByEnvoy(override, await validate({ withOverride: true }));
}

function requireAcceptedByEnvoy({ setting, path, isTemplate }: UserFile, result: ValidationResult): void {
  if (result.is !== 'refused' || namesMissingFile(result.why)) return;
  const { field, reason } = parseRejection(result.why);
  const position = field === undefined || isTemplate ? undefined : findPosition(path, field);
  const location = position === undefined ? path : `${path}:${position.line}:${position.column}`;
  throw new ChartpilotError(
    'BOOTSTRAP_INVALID',
    `${setting} ${location}: ${field === undefined ? '' : `${field}: `}rejected by Envoy: ${reason}`,
    {
      hint: 'Correct the file, and start the agent again: it reads the file only once.',
      fields: { path: field === undefined ? `${setting}: ${path}` : `${setting}: ${path}: ${field}`, ...position },
    },
  );
}

/** In Envoy's message, a path ends at a quote, a space or the end. */
function namesMissingFile(reasonText: string): boolean {
  return [...reasonText.matchAll(/(?<![\w./@])\/[^\s'":,)]+/g)].some(([path]) => !existsSync(path));
}

/**
 * Parses Envoy's message: `… @ admin.address: message T, near 1:46 (offset 45): no such field: 'port') has unknown fields`, or `Proto constraint
 * validation failed (BootstrapValidationError.Admin: … | caused by AdminValidationError.Address: value is required)`.
 */
function parseRejection(reasonText: string): { readonly field?: string; readonly reason: string } {
  const { path, reason } =
    /(?: @ (?<path>\S+): message \S+)?, near \d+:\d+ \(offset \d+\): (?<reason>.+)/.exec(reasonText)?.groups ?? {};
  if (reason === undefined) return parseViolation(reasonText) ?? { reason: reasonText };
  const unknownField = /^no such field: '([^']*)'/.exec(reason)?.[1];
  if (unknownField !== undefined)
    return { field: [path ?? [], unknownField].flat().join('.'), reason: 'no such field' };
  const message = reason.replace(/\)(?: has unknown fields$|: \{.*)/, '');
  return { ...(path !== undefined && { field: path }), reason: message };
}

/** Returns no field within a list, because list indexes of the merged bootstrap differ from those of the file. */
function parseViolation(reasonText: string): { readonly field: string; readonly reason: string } | undefined {
  const matches = [...reasonText.matchAll(/\w+ValidationError\.(\w+)(\[)?/g)];
  const reason = /ValidationError\.\w+: ([^|]+)\)$/.exec(reasonText)?.[1];
  if (reason === undefined || matches.some(([, , index]) => index !== undefined)) return undefined;
  const field = matches.map(([, name = '']) => name.replace(/(?<!^)[A-Z]/g, '_$&').toLowerCase()).join('.');
  return { field, reason };
}

function findPosition(path: string, field: string): YamlPosition | undefined {
  try {
    return parseYamlDocument({ text: readFileSync(path, 'utf8'), line: 1 }).positionOf(field);
  } catch {
    return undefined;
  }
}
