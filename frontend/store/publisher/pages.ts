// The pages of a publisher, loaded together when one of them is opened.
import "../store.css";
import { addIcons } from "../../shared/components/icon";
import { ICONS } from "./icons";
export { Overview } from "./overview";
export { NewProduct } from "./new_product";
export { ManageProduct } from "./manage_product";
export { ManageRelease } from "./manage_release";

addIcons(ICONS);
