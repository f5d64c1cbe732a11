// What stands on a publisher's page for whoever is none.
import type { ComponentChildren } from "preact";
import { Empty } from "../../shared/components/states";
import { SignedIn } from "../first";
import { isPublisher } from "../me";
import { say } from "./say";

export function Publishers({ children }: { children: ComponentChildren }) {
  return (
    <SignedIn>
      {isPublisher.value ? (
        children
      ) : (
        <Empty title={say("not.publisher")}>
          <p>{say("not.publisher.text")}</p>
        </Empty>
      )}
    </SignedIn>
  );
}
