export const podTemplatePaths: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    [
      ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job', 'DeploymentConfig'],
    ].map((kind) => [kind, ['spec', 'template']]),
  ),
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};
