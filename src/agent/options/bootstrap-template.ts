import { readFileSync, statSync } from 'node:fs';
import type { ProxyConfig } from '../../model/mesh/proxy-config.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';

export interface BootstrapTemplate {
  readonly path: string;
  readonly text: string;
}

/** Istio's template has 30 KiB. */
const maxTemplateBytes = 1024 * 1024;

/** The variable `ISTIO_BOOTSTRAP` overrides `customConfigFile`, which overrides the template of the configuration. */
export function bootstrapTemplate(
  { customConfigFile, proxyBootstrapTemplatePath }: ProxyConfig,
  env: NodeJS.ProcessEnv,
): BootstrapTemplate | undefined {
  const path = env.ISTIO_BOOTSTRAP || (customConfigFile ? undefined : proxyBootstrapTemplatePath);
  if (!path) return undefined;
  try {
    if (statSync(path).size > maxTemplateBytes) throw new Error(`must have at most ${maxTemplateBytes} bytes`);
    return { path, text: readFileSync(path, 'utf8') };
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `${path}: ${messageOf(error)}`, {
      hint: 'The bootstrap template is set by ISTIO_BOOTSTRAP, --templateFile or proxyBootstrapTemplatePath.',
      fields: { path },
      cause: error,
    });
  }
}
