/** Is anything wrong right now? */
import { $api } from "../../api/client.ts";
import { PageBody, PageHeader } from "../../ui/page.tsx";
import { Loads } from "../../ui/panels.tsx";

export default function HomePage() {
  const home = $api.useQuery("get", "/ui/home", { params: { query: {} } });
  return (
    <>
      <PageHeader title="Home" />
      <PageBody>
        <Loads query={home}>{(data) => <p className="px-4">{data.now}</p>}</Loads>
      </PageBody>
    </>
  );
}
