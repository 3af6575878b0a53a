import { type Config, configKeyOf } from '../../../model/config/config.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { originalKindName } from '../../../model/kinds/index.ts';

export function problemFieldsOf(config: Config): Pick<Problem, 'file' | 'line' | 'key'> & { readonly object: string } {
  const { source } = config;
  return {
    ...{ file: source?.file ?? '', line: source?.line ?? 1 },
    ...{ object: objectText(config), key: configKeyOf(config) },
  };
}

export function objectText({ kind, namespace, name }: Pick<Config, 'kind' | 'namespace' | 'name'>): string {
  return kind === 'MeshConfig' ? 'mesh configuration' : `${originalKindName(kind)} ${namespace}/${name}`;
}
