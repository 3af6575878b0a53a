import { Command, Option } from 'commander';
import { type ResourceDefinition, resourceDefinitions } from '../../model/schemas/resource-definition.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { addHelpSections } from './help-sections.ts';

type Format = 'yaml' | 'json';

export function crdsCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  const command = new Command('crds')
    .summary("Print the CustomResourceDefinitions of Istio's API")
    .description(
      "Print the CustomResourceDefinitions of Istio's API with schemas, so that the API server rejects most invalid objects. They " +
        'serve all versions and can replace those that Istio installs. The definitions of the Gateway API are not included: ' +
        'install those of its project.',
    )
    .addOption(new Option('-o, --output <format>', 'Output format').choices(['yaml', 'json']).default('yaml'));
  return addHelpSections(command, {
    examples: ['pilot-discovery crds | kubectl apply --server-side -f -'],
    exitCodes: [
      ['0', 'definitions printed'],
      ['1', 'invalid flag, or standard output is closed'],
    ],
  }).action(async ({ output }: { output: Format }) => {
    const definitions = resourceDefinitions();
    print(output === 'json' ? asJson(definitions) : await asYaml(definitions));
  });
}

/** One list, as kubectl expects it. */
function asJson(items: readonly ResourceDefinition[]): string {
  return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 2)}\n`;
}

async function asYaml(definitions: readonly ResourceDefinition[]): Promise<string> {
  const { stringify } = await import('../../model/yaml/yaml-writing.ts');
  // YAML anchors are hard to read.
  return definitions
    .map((definition) => `---\n${stringify(definition, { aliasDuplicateObjects: false, lineWidth: 0 })}`)
    .join('');
}
