/** `pilot-discovery crds`: what a Kubernetes API server must know before it takes objects of Istio's API. */
import { Command, Option } from 'commander';
import { type ResourceDefinition, resourceDefinitions } from '../../model/schemas/resource-definition.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';

type Format = 'yaml' | 'json';

export function crdsCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  return new Command('crds')
    .summary('print the CustomResourceDefinitions of configuration')
    .description(
      "Prints CustomResourceDefinitions of all kinds of configuration of Istio's API, with schemas by which the API server refuses " +
        'most mistakes itself. They serve all versions, and may take the place of those that Istio installs. The same program ' +
        'prints the same. Not printed: kinds of Kubernetes itself, and of the Gateway API, whose definitions all controllers of a ' +
        'cluster share: install those of its project.\n\nExit code: 0, or 1 when they cannot be written.',
    )
    .addOption(new Option('-o, --output <format>', 'how to print them').choices(['yaml', 'json']).default('yaml'))
    .addHelpText('after', '\nExample:\n  pilot-discovery crds | kubectl apply --server-side -f -')
    .action(async ({ output }: { output: Format }) => {
      const definitions = resourceDefinitions();
      print(output === 'json' ? asJson(definitions) : await asYaml(definitions));
    });
}

/** One list, as kubectl takes it. */
function asJson(items: readonly ResourceDefinition[]): string {
  return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 2)}\n`;
}

async function asYaml(definitions: readonly ResourceDefinition[]): Promise<string> {
  const { stringify } = await import('../../model/yaml/yaml-writing.ts');
  // Without anchors: kubectl reads them, and people do not.
  return definitions
    .map((definition) => `---\n${stringify(definition, { aliasDuplicateObjects: false, lineWidth: 0 })}`)
    .join('');
}
